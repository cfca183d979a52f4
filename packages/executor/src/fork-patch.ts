/** A saved state and what is changed about it → the state that a fork begins with. Pure. */
import {
  ConfigurationError,
  appendFrozen,
  deepFreeze,
  freezeFresh,
  frozenCopy,
  isMessage,
  lastStep,
  resultOf,
  toJson,
  type Checkpoint,
  type InProgressCheckpoint,
  type JsonValue,
  type Message,
  type StoredBackgroundTask,
  type ToolResultPart,
  type UserMessage,
} from '@lousho/contract';
import { inputMessages } from './accept-input.ts';
import { content, type Content } from './checkpoint-status.ts';
import { knownSpend, openCalls } from './next-action.ts';
import { placeResults } from './record-results.ts';
import { givenTask } from './task-ledger.ts';
import { transcriptProblem } from './valid-transcript.ts';

/** Applied in this order. */
export interface ForkPatch {
  /** Rewrites the transcript; it must stay valid. */
  readonly messages?: ((messages: readonly Message[]) => readonly Message[]) | undefined;
  /** `null` is a value. */
  readonly businessState?: JsonValue | undefined;
  /** Replaces a result in place, or records it for an open call, which then does not run. */
  readonly toolResult?: { readonly toolCallId: string; readonly result: JsonValue } | undefined;
  /** Sent after the calls that are still open. */
  readonly appendInput?: string | UserMessage | undefined;
}

export interface ForkFacts {
  readonly runId: string;
  readonly forkedFrom: { readonly sessionId: string; readonly step: number };
}

/**
 * The source's transcript, budget and spend; nothing of its failures, decisions and marks, which belong to its own execution.
 * @throws LOUSHO_CONFIG_INVALID for a patch that does not fit
 */
export function forkedCheckpoint(
  source: Checkpoint,
  facts: ForkFacts,
  patch: ForkPatch,
): InProgressCheckpoint {
  const { traceparent: _link, ...kept } = content(source);
  let fork: Content = {
    ...kept,
    ...facts,
    usage: knownSpend(source),
    approvals: [],
    startedToolCallIds: [],
    delegatedInFlight: [],
  };
  if (patch.messages !== undefined) fork = withMessages(fork, patch.messages);
  if (patch.businessState !== undefined)
    fork = { ...fork, businessState: storable('patch.businessState', patch.businessState) };
  if (patch.toolResult !== undefined) fork = withResult(fork, patch.toolResult);
  if (patch.appendInput !== undefined)
    fork = { ...fork, heldInput: appendFrozen(fork.heldInput, userMessages(patch.appendInput)) };
  fork = withTasksAnew(fork);
  // Nobody has executed it yet: recovery leaves it to whoever made it.
  return freezeFresh({ ...fork, status: 'in-progress', startsWithoutProgress: 0 });
}

/** Their sub-agents are the source's: those of the fork begin anew. A task whose call was taken out of the transcript is none. */
function withTasksAnew({ backgroundTasks, ...fork }: Content): Content {
  if (backgroundTasks === undefined) return fork;
  const kept = backgroundTasks.flatMap((task): StoredBackgroundTask[] => {
    if (task.isOver) return [task];
    const { taskId, agent, step, index } = task;
    const isGiven = givenTask({ ...fork, status: 'in-progress' }, task) !== undefined;
    return isGiven ? [{ taskId, agent, step, index, status: 'queued' }] : [];
  });
  return { ...fork, backgroundTasks: kept };
}

/* ── The transcript ── */

function withMessages(fork: Content, rewrite: NonNullable<ForkPatch['messages']>): Content {
  const given: unknown = rewrite(fork.messages);
  const json = toJson(given);
  if (!json.ok || !Array.isArray(json.json) || !json.json.every(isMessage))
    refuse('patch.messages', 'a function that gives messages');
  // Its own list again: then a store knows what it holds already.
  const messages =
    given === fork.messages ? fork.messages : frozenCopy(json.json as unknown as readonly Message[]);
  const problem = transcriptProblem(messages);
  if (problem !== undefined) refuse('patch.messages', `a function that gives a valid transcript: ${problem}`);
  const open = new Set(lastStep(messages)?.calls.map(({ toolCallId }) => toolCallId));
  return placed({
    ...fork,
    messages,
    runInput: runInputIn(messages, fork),
    settledResults: fork.settledResults.filter(({ toolCallId }) => open.has(toolCallId)),
  });
}

/** Where this run's input is now; at the last user message when it was rewritten, too. */
function runInputIn(
  messages: readonly Message[],
  { messages: before, runInput }: Content,
): Content['runInput'] {
  const first = JSON.stringify(before[runInput.start]);
  const start = messages.findLastIndex((message) => JSON.stringify(message) === first);
  if (start >= 0) return { start, count: Math.min(runInput.count, messages.length - start) };
  return {
    start: Math.max(
      0,
      messages.findLastIndex(({ role }) => role === 'user'),
    ),
    count: 1,
  };
}

/* ── A result ── */

function withResult(fork: Content, { toolCallId, result }: NonNullable<ForkPatch['toolResult']>): Content {
  const value = storable('patch.toolResult.result', result);
  const replace = (part: ToolResultPart): ToolResultPart =>
    deepFreeze({ type: 'tool-result', toolCallId, toolName: part.toolName, result: value });
  const recorded = fork.messages.flatMap((message, index) =>
    resultOf(message)?.toolCallId === toolCallId ? [index] : [],
  );
  const early = fork.settledResults.filter((part) => part.toolCallId === toolCallId);
  const open = openCalls({ ...fork, status: 'in-progress' }).filter(
    ({ call }) => call.toolCallId === toolCallId,
  );
  if (recorded.length + early.length + open.length !== 1)
    refuse(
      'patch.toolResult.toolCallId',
      recorded.length + early.length + open.length === 0
        ? 'the id of a call in the kept transcript'
        : 'an id that one call alone has; use patch.messages',
      toolCallId,
    );
  const [index] = recorded;
  if (index !== undefined) {
    const part = resultOf(fork.messages[index] as Message) as ToolResultPart;
    const message: Message = { role: 'tool', content: [replace(part)] };
    const messages = appendFrozen(fork.messages.slice(0, index), [
      message,
      ...fork.messages.slice(index + 1),
    ]);
    return { ...fork, messages };
  }
  const settledResults = fork.settledResults.map((part) =>
    part.toolCallId === toolCallId ? replace(part) : part,
  );
  const [call] = open;
  if (call === undefined) return { ...fork, settledResults };
  const { toolName } = call.call;
  const part: ToolResultPart = { type: 'tool-result', toolCallId, toolName, result: value };
  return placed({ ...fork, settledResults: [...settledResults, deepFreeze(part)] });
}

/** Results that are next in call order go into the transcript. */
function placed(fork: Content): Content {
  return content(placeResults({ ...fork, status: 'in-progress' }));
}

/* ── Input and values ── */

function userMessages(given: string | UserMessage): readonly Message[] {
  const message: unknown = typeof given === 'string' ? { role: 'user', content: given } : given;
  if ((message as { role?: unknown } | null)?.role !== 'user')
    refuse('patch.appendInput', 'a text or a user message');
  return inputMessages(message as UserMessage);
}

function storable(option: string, value: unknown): JsonValue {
  const json = toJson(value);
  if (!json.ok) refuse(json.path === '' ? option : `${option}.${json.path}`, 'JSON');
  return deepFreeze(json.json);
}

function refuse(option: string, want: string, got?: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
    option,
    want,
    ...(got === undefined ? undefined : { got }),
  });
}
