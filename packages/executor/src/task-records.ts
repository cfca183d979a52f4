/** What was said in a task, kept so that the lead may go on with it by its id. Each record is written once: whoever goes on writes another. */
import {
  answeredCalls,
  emptyUsage,
  isSDKError,
  ownCalls,
  parseSessionRecord,
  type ExecutionResult,
  type JsonObject,
  type Message,
  type SessionStore,
  type ToolResultPart,
} from '@lousho/contract';
import { sha256 } from './agent-fingerprint.ts';
import { refuseSealed } from './refuse-sealed.ts';
import type { Run } from './run.ts';
import { TASK } from './task-tool.ts';

/** A task as the result of its call names it. */
export interface TaskRef {
  readonly taskId: string;
  readonly agent: string;
  /** Where it is kept; absent: it cannot be gone on with. */
  readonly record?: string;
  /** The result says that it began, and no more. */
  readonly isBackground?: true;
  /** Where that is kept which it goes on with. */
  readonly goesOnWith?: string;
}

/** `task_1`, `task_2`, ...: the tasks of a conversation in the order in which the model gave them. */
export function nextTaskId(messages: readonly Message[], toolCallId: string): string {
  let count = 0;
  let last = 0;
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    for (const call of ownCalls(message)) {
      if (call.toolName !== TASK || taskIdIn(call.args) !== undefined) continue;
      count += 1;
      // A provider may use one id in many steps: it is the call of the last one.
      if (call.toolCallId === toolCallId) last = count;
    }
  }
  return `${TASK}_${last}`;
}

/** Whom the call goes on with, if it says so. */
export function taskIdIn(args: unknown): string | undefined {
  const { taskId } = (args ?? {}) as { readonly taskId?: unknown };
  return typeof taskId === 'string' ? taskId : undefined;
}

/** As the conversation shows it last: a task of another conversation is not in it. */
export function findTask(messages: readonly Message[], taskId: string): TaskRef | undefined {
  let found: TaskRef | undefined;
  for (const { result } of answeredCalls(messages))
    for (const task of refsIn(result)) if (task.taskId === taskId) found = task;
  return found;
}

/** The task that the result of a `task` call names. */
export function refOf({ providerMetadata }: ToolResultPart): TaskRef | undefined {
  return providerMetadata?.lousho?.task as TaskRef | undefined;
}

/** One answer comes with its call; those of tasks in the background come together. */
function refsIn(result: ToolResultPart): readonly TaskRef[] {
  const own = refOf(result);
  const awaited = result.providerMetadata?.lousho?.tasks as readonly TaskRef[] | undefined;
  return own === undefined ? (awaited ?? []) : [own];
}

/** Where the tasks of a conversation are kept. */
export function taskRecordsIn(messages: readonly Message[]): readonly string[] {
  const ids: string[] = [];
  for (const { result } of answeredCalls(messages))
    for (const { record } of refsIn(result)) if (record !== undefined) ids.push(record);
  return ids;
}

export function metadataOf(task: TaskRef): { readonly lousho: JsonObject } {
  return { lousho: { task: { ...task } } };
}

export function metadataOfAll(tasks: readonly TaskRef[]): { readonly lousho: JsonObject } {
  return { lousho: { tasks: tasks.map((task) => ({ ...task })) } };
}

/** Where it is kept, or `undefined` when it is too large for that: then nobody goes on with it, which is no reason to lose its result. */
export async function keepTask(
  run: Run,
  childId: string,
  { messages }: ExecutionResult,
): Promise<string | undefined> {
  const id = `${TASK}-${(await sha256(childId)).slice(0, 40)}`;
  const records = recordsOf(run);
  if (records === undefined) {
    run.tasks.set(id, messages);
    return id;
  }
  const savedAt = new Date(run.engine.ports.clock.wallMs()).toISOString();
  const record = { id, revision: 0, turn: 1, messages, inputIds: [], usage: emptyUsage, savedAt };
  try {
    // Refused when it is there already: a process died between this and the result.
    await records.saveIfRevision(record, 0);
    return id;
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_CHECKPOINT_TOO_LARGE')) return undefined;
    throw error;
  }
}

/** @throws what the store throws, LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_KEY_UNKNOWN */
export async function readTask(run: Run, id: string): Promise<readonly Message[] | undefined> {
  const records = recordsOf(run);
  if (records === undefined) return run.tasks.get(id);
  const stored = await records.load(id);
  refuseSealed(stored, { id, record: 'session' });
  return stored ? parseSessionRecord(stored, id).messages : undefined;
}

/** A run without a session has no later one: what it needs itself is in its memory. */
function recordsOf({ sessionId, agent }: Run): SessionStore | undefined {
  return sessionId === undefined ? undefined : agent.taskRecords;
}
