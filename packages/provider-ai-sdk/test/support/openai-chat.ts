/** Chat completions, of OpenAI and of the many servers that speak like it. The latter show their reasoning. */
import { ANSWER, ARGS, REASONING, TEXT, type Service } from './service.ts';
import { events, halves, json, type WireBody, type WireEvent, type WireReply } from './wire-server.ts';

interface Call {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}
interface ChatMessage {
  readonly content: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly Call[];
}

const calls: readonly Call[] = [
  { id: 'call_a', type: 'function', function: { name: 'weather', arguments: JSON.stringify(ARGS) } },
  // Many servers write nothing at all for a call without arguments.
  { id: 'call_b', type: 'function', function: { name: 'now', arguments: '' } },
];
const base = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'chat-test' };
const usage = {
  ...{ prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
  ...{ prompt_tokens_details: { cached_tokens: 40 }, completion_tokens_details: { reasoning_tokens: 8 } },
};

export const openaiChat = chatService({ content: TEXT, tool_calls: calls });
export const openaiCompatible = chatService({
  content: TEXT,
  reasoning_content: REASONING,
  tool_calls: calls,
});

function chatService(firstStep: ChatMessage): Service {
  const reasoningEvents = firstStep.reasoning_content === undefined ? 0 : 2;
  return {
    path: '/v1/chat/completions',
    firstStep: ({ body }) => reply(body, firstStep, 'tool_calls'),
    secondStep: ({ body }) => reply(body, { content: ANSWER }, 'stop'),
    firstEvents: eventsOf(firstStep, 'tool_calls'),
    eventsUntilText: 1 + reasoningEvents + 1,
    itemsOfFirstStep: itemsOf({
      ...firstStep,
      tool_calls: calls.map((call) => ({
        ...call,
        function: { ...call.function, arguments: call.function.arguments || '{}' },
      })),
    }),
    itemsIn: (body) =>
      messagesOf(body)
        .filter(({ role }) => role === 'assistant')
        .flatMap(itemsOf),
    resultsIn: (body) =>
      messagesOf(body)
        .filter(({ role }) => role === 'tool')
        .map(({ tool_call_id, content }) => ({ id: tool_call_id, content })),
  };
}

function messagesOf(
  body: WireBody,
): readonly (ChatMessage & { readonly role: string; readonly tool_call_id?: string })[] {
  return body.messages as ReturnType<typeof messagesOf>;
}

function itemsOf({ reasoning_content, content, tool_calls = [] }: ChatMessage): readonly unknown[] {
  return [
    ...(reasoning_content === undefined ? [] : [{ reasoning: reasoning_content }]),
    { text: content },
    ...tool_calls.map(({ id, function: called }) => ({ id, name: called.name, arguments: called.arguments })),
  ];
}

function reply(body: WireBody, message: ChatMessage, finishReason: string): WireReply {
  if (body.stream === true) return events(eventsOf(message, finishReason), { lastLine: '[DONE]' });
  const choice = { index: 0, message: { role: 'assistant', ...message }, finish_reason: finishReason };
  return json({ ...base, object: 'chat.completion', choices: [choice], usage });
}

function eventsOf(message: ChatMessage, finishReason: string): readonly WireEvent[] {
  const deltas: object[] = [
    { role: 'assistant', content: '' },
    ...halves(message.reasoning_content ?? '').map((text) => ({ reasoning_content: text })),
    ...halves(message.content).map((content) => ({ content })),
    ...(message.tool_calls ?? []).flatMap(callDeltas),
  ];
  const chunks = deltas.map((delta) => chunk([{ index: 0, delta, finish_reason: null }]));
  return [...chunks, chunk([{ index: 0, delta: {}, finish_reason: finishReason }]), { ...chunk([]), usage }];
}

/** The first has id and name, the others more of the arguments. */
function callDeltas({ id, type, function: called }: Call, index: number): readonly object[] {
  const start = { index, id, type, function: { name: called.name, arguments: '' } };
  const more = halves(called.arguments).map((text) => ({ index, function: { arguments: text } }));
  return [start, ...more].map((call) => ({ tool_calls: [call] }));
}

function chunk(choices: readonly object[]): WireEvent {
  return { ...base, object: 'chat.completion.chunk', choices };
}
