/** What must hold after a crash at any point, whatever the scenario was. */
import {
  classifyCheckpointId,
  jsonEqual,
  resultOf,
  type AgentStore,
  type AssistantPart,
  type Checkpoint,
  type CheckpointListEntry,
  type JsonValue,
  type Message,
  type ToolResultPart,
} from '@lousho/contract';
import { transcriptProblems, unfinishedTranscriptProblems } from '../transcript-problems.ts';
import type { CrashJournal, RunTrace } from './crash-journal.ts';
import type { CrashScenario } from './crash-scenario.ts';
import type { BegunCall } from './crashing-store.ts';

export interface PassEnd {
  readonly store: AgentStore;
  readonly journal: CrashJournal;
  readonly checkpoints: readonly CheckpointListEntry[];
  readonly ends: NonNullable<CrashScenario['ends']>;
  /** The pass without a crash; absent while that is the one in question. */
  readonly control?: CrashJournal | undefined;
}

/** The promises that were broken, one sentence each. */
export async function brokenPromises(end: PassEnd): Promise<string[]> {
  const { store, journal, checkpoints, ends } = end;
  const problems: string[] = [];
  for (const entry of checkpoints) problems.push(...endProblems(entry, ends));
  if (ends === 'finished') {
    for (const { id } of (await store.approvals?.list()) ?? [])
      problems.push(`The approval "${id}" is still in the inbox.`);
  }
  for (const run of journal.runs) {
    const last = checkpoints.find(({ sessionId }) => sessionId === run.id)?.checkpoint ?? undefined;
    problems.push(...historyProblems(run, run.isDeleted ? undefined : last));
    if (run.isDeleted) problems.push(...(await commitProblems(run, store)));
  }
  if (end.control !== undefined) problems.push(...effectProblems(journal, end.control));
  return problems;
}

/**
 * Saves that the store acknowledged and does not have, once no process is there to repeat them. A save that the death of its process cut off may
 * still come about (C8), also while this looks.
 */
export async function lostSaves(
  store: AgentStore,
  journal: CrashJournal,
  underWay: Iterable<BegunCall>,
): Promise<string[]> {
  const problems: string[] = [];
  for (const { id, saves, isDeleted } of journal.runs) {
    const count = saves.length;
    const begun = [...underWay].filter((call) => isSaveOf(id, call)).map(({ args }) => args[1]);
    const stored = await store.checkpoints?.load(id);
    const possible = [...saves.slice(count - 1), ...begun];
    if (isDeleted || possible.some((state) => sameJson(stored, state))) continue;
    problems.push(`"${id}": save ${count} was acknowledged, and something else is stored.`);
  }
  return problems;
}

function isSaveOf(id: string, { method, args }: BegunCall): boolean {
  return (method === 'save' || method === 'saveIfLeased') && args[0] === id;
}

/** How one run ended. */
function* endProblems(
  { sessionId: id, status, checkpoint, error }: CheckpointListEntry,
  ends: PassEnd['ends'],
): Iterable<string> {
  const { kind } = classifyCheckpointId(id);
  if (kind === 'bookkeeping') return;
  if (checkpoint === null) {
    yield `"${id}" is damaged: ${error?.message ?? 'it has no checkpoint'}.`;
    return;
  }
  if (ends === 'finished' && status !== 'finished') yield `"${id}" is ${status} instead of finished.`;
  if (ends === 'finished' && kind === 'child')
    yield `The checkpoint of the sub-agent "${id}" was left behind.`;
  const problemsOf = status === 'finished' ? transcriptProblems : unfinishedTranscriptProblems;
  for (const problem of problemsOf(checkpoint.messages)) yield `"${id}": ${problem}`;
}

/** No acknowledged save is lost: each is the beginning of the next, and the last one of what is stored. */
function* historyProblems(run: RunTrace, last: Checkpoint | undefined): Iterable<string> {
  if (!run.isDeleted && last === undefined) {
    yield `"${run.id}" is gone, and nobody deleted it.`;
    return;
  }
  const states = last === undefined ? run.saves : [...run.saves, last];
  for (const [index, earlier] of states.entries()) {
    const later = states[index + 1];
    if (later === undefined) continue;
    const lost = lostMessage(earlier, later);
    if (lost !== undefined) yield `"${run.id}": save ${index + 1} had ${lost}, and what came after has not.`;
  }
  const end = states.at(-1);
  for (const earlier of run.saves)
    for (const result of earlier.settledResults)
      if (end !== undefined && !keepsEarlyResult(earlier, result, end))
        yield `"${run.id}": the result of "${result.toolCallId}" was recorded and is lost or changed.`;
}

function lostMessage(earlier: Checkpoint, later: Checkpoint): string | undefined {
  const before = conversation(earlier.messages);
  const after = conversation(later.messages);
  const index = before.findIndex((message, at) => !isKept(message, after[at], after));
  const message = before[index];
  return message === undefined ? undefined : `${message.role} message ${index} ${excerpt(message)}`;
}

/** Without the leading system messages, which a resume may refresh. */
function conversation(messages: readonly Message[]): readonly Message[] {
  const first = messages.findIndex(({ role }) => role !== 'system');
  return first === -1 ? [] : messages.slice(first);
}

function isKept(before: Message, after: Message | undefined, all: readonly Message[]): boolean {
  if (after === undefined) return false;
  if (sameJson(before, after)) return true;
  if (before.role !== 'assistant' || after.role !== 'assistant') return false;
  if (before.content.length !== after.content.length) return false;
  return before.content.every((part, index) => isKeptPart(part, after.content[index], all));
}

/** A person may approve a call with other arguments; the audit of its result then keeps those that the model had asked for. */
function isKeptPart(
  before: AssistantPart,
  after: AssistantPart | undefined,
  all: readonly Message[],
): boolean {
  if (after === undefined || sameJson(before, after)) return after !== undefined;
  if (before.type !== 'tool-call' || after.type !== 'tool-call') return false;
  const isAudited = all.some((message) => {
    const result = resultOf(message);
    return (
      result?.toolCallId === before.toolCallId && sameJson(result.approval?.proposedArgs ?? null, before.args)
    );
  });
  return isAudited && sameJson({ ...before, args: null }, { ...after, args: null });
}

/** In its place behind the step, or still early. */
function keepsEarlyResult(earlier: Checkpoint, result: ToolResultPart, end: Checkpoint): boolean {
  if (end.settledResults.some((part) => sameJson(part, result))) return true;
  const behind = conversation(end.messages).slice(conversation(earlier.messages).length);
  const nextStep = behind.findIndex(({ role }) => role !== 'tool');
  const placed = nextStep === -1 ? behind : behind.slice(0, nextStep);
  return placed.some((message) => sameJson(resultOf(message), result));
}

/** The turn of a session ends in the session: what it had is there. */
async function commitProblems(run: RunTrace, store: AgentStore): Promise<readonly string[]> {
  const kind = classifyCheckpointId(run.id);
  const last = run.saves.at(-1);
  if (kind.kind !== 'session' || last?.status !== 'finished') return [];
  const record = await store.sessions?.load(kind.sessionId);
  if (!record) return [];
  const kept = new Set(record.messages.map((message) => JSON.stringify(resultOf(message))));
  return last.messages
    .map(resultOf)
    .filter((result) => result !== undefined && !kept.has(JSON.stringify(result)))
    .map(
      (result) => `The session "${kind.sessionId}" has no result of "${result?.toolCallId}" of "${run.id}".`,
    );
}

/** Without a crash each effect happened as often as it should; a process may repeat only what was not recorded before it began. */
function* effectProblems(journal: CrashJournal, control: CrashJournal): Iterable<string> {
  const expected = control.totalEffects();
  const results = control.recordedByTool();
  const approved = control.approvedTools();
  for (const [name, total] of journal.totalEffects()) {
    const once = expected.get(name);
    if (once === undefined) continue;
    // Counted in results only when the effect is named after its tool and happens once a run of it.
    const isTool = results.get(name) === once;
    for (const [restart, { effects, recordedBefore }] of journal.processes.entries()) {
      const count = effects.get(name) ?? 0;
      const recorded = isTool ? (recordedBefore.get(name) ?? 0) : 0;
      if (count > Math.max(0, once - recorded))
        yield `"${name}" happened ${times(count)} in process ${restart}, with ${recorded} of its ${once} results recorded before.`;
    }
    if (isTool && approved.has(name) && total > once)
      yield `"${name}" was approved for ${times(once)} and happened ${times(total)}.`;
  }
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function excerpt(message: Message): string {
  const text = JSON.stringify(message.content);
  return text.length <= 120 ? text : `${text.slice(0, 117)}...`;
}

function sameJson(a: unknown, b: unknown): boolean {
  return a === b || jsonEqual(a as JsonValue | undefined, b as JsonValue | undefined);
}
