/** Stands for a model, so that the example needs no key: it knows orders and refunds, and speaks word by word. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonValue, LLMProvider, LLMRequest, LLMResponse, Message } from '@lousho/core';

interface Reply {
  readonly text: string;
  readonly call?: { readonly toolName: string; readonly args: JsonValue };
}

/** What `find_order` gives; `error` when there is none. */
interface Found {
  readonly item?: string;
  readonly cents?: number;
  readonly state?: string;
  readonly error?: string;
}

/** @param wordMs how long it takes over a word */
export function scriptedModel(wordMs: number): LLMProvider {
  return {
    providerId: 'scripted',
    modelId: 'a scripted model',
    generate: async (request) => responseOf(request, replyTo(request.messages)),
    async *stream(request) {
      const reply = replyTo(request.messages);
      for (const word of reply.text.match(/\S+\s*/g) ?? []) {
        await sleep(wordMs, undefined, { signal: request.signal });
        yield { type: 'text-delta', text: word };
      }
      yield { type: 'finish', response: responseOf(request, reply) };
    },
  };
}

/** What it says depends on the last question, and on what has been done about it. */
function replyTo(messages: readonly Message[]): Reply {
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const question = wordsOf(messages[asked]);
  const order = Number(/\d+/.exec(question)?.[0] ?? 0);
  const [found, paid] = messages.slice(asked + 1).flatMap(resultsOf);
  if (order === 0)
    return {
      text: 'Hello. I am only a script, but I know the orders 7 and 8: ask where one is, or for a refund.',
    };
  if (found === undefined)
    return {
      text: `Let me look up order ${order} for you.`,
      call: { toolName: 'find_order', args: { order } },
    };
  const { item, cents = 0, state, error } = found as Found;
  if (error !== undefined) return { text: `I am sorry: ${error}` };
  if (!/refund|back/i.test(question))
    return { text: `${item} is ${state}. Is there anything else that I can do about it?` };
  const sum = `${(cents / 100).toFixed(2)} euros`;
  if (paid === undefined)
    return {
      text: `${item}, ${state}, was ${sum}. I can pay all of it back to the card that it was bought with, if you agree.`,
      call: { toolName: 'refund', args: { order, cents } },
    };
  return typeof paid === 'object' && paid !== null && 'refundedCents' in paid
    ? {
        text: `Done: ${sum} are on their way back to you. They take two or three days, as always with cards.`,
      }
    : { text: 'All right, then I have paid nothing back, and the order stays as it is.' };
}

function wordsOf(message: Message | undefined): string {
  return typeof message?.content === 'string' ? message.content : JSON.stringify(message?.content ?? '');
}

function resultsOf(message: Message): readonly JsonValue[] {
  return message.role === 'tool' ? message.content.map(({ result }) => result) : [];
}

function responseOf({ messages }: LLMRequest, { text, call }: Reply): LLMResponse {
  const toolCallId = `call_${messages.length}`;
  return {
    message: {
      role: 'assistant',
      content: [
        { type: 'text', text },
        ...(call === undefined ? [] : [{ type: 'tool-call' as const, toolCallId, ...call }]),
      ],
    },
    finishReason: call === undefined ? 'stop' : 'tool-calls',
    usage: { inputTokens: 40, outputTokens: text.split(' ').length },
  };
}
