/** What must hold after a crash at any point, whatever the scenario was. */
import {
  classifyCheckpointId,
  resultOf,
  type AgentStore,
  type Checkpoint,
  type CheckpointListEntry,
} from '@lousho/contract';
import { transcriptProblems, unfinishedTranscriptProblems } from '../transcript-problems.ts';
import type { CrashJournal, RunTrace } from './crash-journal.ts';
import type { CrashScenario } from './crash-scenario.ts';
import type { BegunCall } from './crashing-store.ts';
import { keepsEarlyResult, lostMessage, sameJson } from './kept-transcript.ts';

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
