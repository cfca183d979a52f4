/** What the models of a world say: a function of the seed and of what they are asked, so that a request made again gets the same answer. */
import {
  textOf,
  type JsonObject,
  type LLMRequest,
  type LLMResponse,
  type Message,
  type ToolCallPart,
} from '@lousho/contract';
import { seededRandom, type SeededRandom } from '../conformance/seeded-random.ts';

/** Each is one kind of call that a run may meet. */
export type ToolName =
  | 'look'
  /** Waits for a person. */
  | 'pay'
  /** Is never run again. */
  | 'once'
  /** A person says whether it is run again. */
  | 'unsure'
  | 'fails'
  /** Rejects the run, every other time. */
  | 'rejects';
export const toolNames: readonly ToolName[] = ['look', 'pay', 'once', 'unsure', 'fails', 'rejects'];
export const DESK = 'desk';
/** By depth: the agent itself delegates to the first, that one to the second. */
export const helpers = ['helper', 'deeper'] as const;

/** Tokens of each response. */
export const RESPONSE_USAGE = { inputTokens: 3, outputTokens: 2 } as const;
/** Responses to one input. */
const MOST_RESPONSES = 3;

export interface ScriptOptions {
  readonly seed: number;
  readonly repeatsCallIds: boolean;
}

export function respond({ messages }: Pick<LLMRequest, 'messages'>, options: ScriptOptions): LLMResponse {
  const key = keyOf(messages);
  const position = countResponses(messages) + 1;
  const random = seededRandom(hashOf(`${options.seed} ${key} ${position}`));
  const isEnd = countSince(messages) >= MOST_RESPONSES || random.chance(0.3);
  const depth = key.split('/').length - 1;
  const callCount = isEnd ? 0 : random.pick([1, 1, 2, 3]);
  const calls = Array.from({ length: callCount }, (_, index): ToolCallPart => {
    const place = `c${position}-${index}`;
    const toolCallId = options.repeatsCallIds ? `call_${index}` : place;
    return { type: 'tool-call', toolCallId, ...planCall(random, depth, `${key}/${place}`) };
  });
  return {
    message: {
      role: 'assistant',
      content: [{ type: 'text', text: `Response ${position} to ${key}.` }, ...calls],
    },
    finishReason: isEnd ? 'stop' : 'tool-calls',
    usage: RESPONSE_USAGE,
  };
}

function planCall(
  random: SeededRandom,
  depth: number,
  place: string,
): { readonly toolName: string; readonly args: JsonObject } {
  const helper = helpers[depth];
  const toolName = random.pick<string>([
    ...['look', 'look', 'look', 'pay', 'pay', 'once', 'unsure', 'fails', 'rejects', 'nobody'],
    ...(helper === undefined ? [] : ['task', 'task']),
    ...(depth === 0 ? [`handoff_to_${DESK}`] : []),
  ]);
  if (toolName === 'task') return { toolName, args: { agent: helper ?? '', prompt: `${place}: Work.` } };
  if (toolName.startsWith('handoff_to_')) return { toolName, args: {} };
  const ms = random.pick([0, random.below(500), random.below(5_000), random.chance(0.1) ? 70_000 : 0]);
  return { toolName, args: { ms, heedsSignal: random.chance(0.5) } };
}

/** Its first words name a conversation, or the task of a sub-agent. */
function keyOf(messages: readonly Message[]): string {
  const first = messages.find(({ role }) => role === 'user');
  return first === undefined ? '' : textOf(first).replace(/: .*/s, '');
}

function countResponses(messages: readonly Message[]): number {
  return messages.filter(({ role }) => role === 'assistant').length;
}

/** Responses behind the last input. */
function countSince(messages: readonly Message[]): number {
  return countResponses(messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1));
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash | 0;
}
