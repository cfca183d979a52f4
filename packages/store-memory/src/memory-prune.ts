/** What may go because it is old, and what must stay because somebody still needs it. */
import {
  classifyCheckpointId,
  type Checkpoint,
  type CheckpointStatus,
  type Clock,
  type PruneOptions,
  type PruneResult,
} from '@lousho/contract';
import type { MemoryState } from './memory-state.ts';
import { statusOf } from './stored-status.ts';

/** Everything that is older, over all parts. Checkpoints decide: approvals and sessions only go when no run that stays needs them. */
export function pruneStore(state: MemoryState, clock: Clock, options: PruneOptions): PruneResult {
  const age = ageLimit(clock, options);
  const runIds = prunableRuns(state, age);
  const historyIds = prunableHistories(state, age, runIds);
  const approvalIds = prunableApprovals(state, age, runIds);
  const sessionIds = prunableSessions(state, age, runIds);
  const result: PruneResult = {
    checkpoints: runIds.size,
    historyEntries: sum(historyIds.values()),
    approvals: approvalIds.length,
    sessions: sessionIds.length,
  };
  if (options.dryRun === true) return result;
  removeRuns(state, runIds);
  for (const [id, count] of historyIds) {
    if (count === state.history.countOf(id)) state.history.delete(id);
    else state.history.dropOldest(id, count);
  }
  for (const id of approvalIds) state.approvals.delete(id);
  for (const id of sessionIds) state.sessions.delete(id);
  return result;
}

/** Finished runs alone, with their history: what `retentionMs` promises. */
export function pruneFinishedRuns(state: MemoryState, clock: Clock, olderThanMs: number): void {
  removeRuns(state, prunableRuns(state, ageLimit(clock, { olderThanMs })));
}

interface AgeLimit {
  readonly statuses: readonly CheckpointStatus[];
  readonly nowMonotonicMs: number;
  isOld(time: string): boolean;
}

function ageLimit(clock: Clock, { olderThanMs, statuses = ['finished'] }: PruneOptions): AgeLimit {
  const cutoffMs = clock.wallMs() - olderThanMs;
  return {
    statuses,
    nowMonotonicMs: clock.monotonicMs(),
    // A time that cannot be read is never old: better kept than lost.
    isOld: (time) => Date.parse(time) <= cutoffMs,
  };
}

/** Ids of old runs and of what is below them. A sub-agent goes with its lead, never before: the lead still reads its result. */
function prunableRuns(state: MemoryState, age: AgeLimit): Set<string> {
  const prunable = new Set<string>();
  const children: { readonly id: string; readonly leadId: string }[] = [];
  for (const [id, checkpoint] of state.checkpoints) {
    const kind = classifyCheckpointId(id);
    if (kind.kind === 'child') children.push({ id, leadId: kind.leadId });
    else if (isWanted(checkpoint, age) && !isNeeded(state, id, checkpoint, age)) prunable.add(id);
  }
  for (const { id, leadId } of children) {
    const savedAt = state.checkpoints.get(id)?.savedAt ?? '';
    const isOrphan = !state.checkpoints.has(leadId) && age.isOld(savedAt);
    const isLeased = [id, leadId].some((leased) => state.leases.isLive(leased, age.nowMonotonicMs));
    if (prunable.has(leadId) || (isOrphan && !isLeased)) prunable.add(id);
  }
  return prunable;
}

function isWanted(checkpoint: Checkpoint, age: AgeLimit): boolean {
  return age.statuses.includes(statusOf(checkpoint)) && age.isOld(checkpoint.savedAt);
}

/** Somebody executes it, or a person has to decide about it. */
function isNeeded(state: MemoryState, id: string, checkpoint: Checkpoint, age: AgeLimit): boolean {
  return state.leases.isLive(id, age.nowMonotonicMs) || waitsForPerson(checkpoint);
}

function waitsForPerson(checkpoint: Checkpoint): boolean {
  return checkpoint.approvals.some((approval) => approval.decision === undefined);
}

/** How many of the oldest entries may go, by id. A run that stays keeps its newest one, and one that is needed keeps all. */
function prunableHistories(
  state: MemoryState,
  age: AgeLimit,
  runIds: ReadonlySet<string>,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const id of state.history.ids()) {
    const checkpoint = runIds.has(id) ? undefined : state.checkpoints.get(id);
    if (checkpoint !== undefined && isNeeded(state, id, checkpoint, age)) continue;
    const entries = state.history.newestFirst(id);
    const firstOld = entries.findIndex((entry) => age.isOld(entry.savedAt));
    const oldCount = firstOld === -1 ? 0 : entries.length - firstOld;
    const count = runIds.has(id) ? entries.length : Math.min(oldCount, entries.length - (checkpoint ? 1 : 0));
    if (count > 0) counts.set(id, count);
  }
  return counts;
}

/** Records that no run waits on any more. One that carries its run with it waits by itself. */
function prunableApprovals(state: MemoryState, age: AgeLimit, runIds: ReadonlySet<string>): string[] {
  const ids: string[] = [];
  for (const { id, checkpointId, createdAt, snapshot } of state.approvals.values()) {
    const checkpoint = state.checkpoints.get(checkpointId);
    const isOrphan = snapshot === undefined && (checkpoint === undefined || !waitsForPerson(checkpoint));
    if (runIds.has(checkpointId) || (isOrphan && age.isOld(createdAt))) ids.push(id);
  }
  return ids;
}

/** Old conversations without a turn under way. They count as finished. */
function prunableSessions(state: MemoryState, age: AgeLimit, runIds: ReadonlySet<string>): string[] {
  if (!age.statuses.includes('finished')) return [];
  const busy = new Set<string>();
  for (const id of state.checkpoints.keys()) {
    const kind = classifyCheckpointId(id);
    if (kind.kind === 'session' && !runIds.has(id)) busy.add(kind.sessionId);
  }
  const ids: string[] = [];
  for (const { id, savedAt } of state.sessions.values())
    if (age.isOld(savedAt) && !busy.has(id) && !state.leases.isLive(id, age.nowMonotonicMs)) ids.push(id);
  return ids;
}

function removeRuns(state: MemoryState, ids: Iterable<string>): void {
  for (const id of ids) {
    state.removeCheckpoint(id);
    state.history.delete(id);
  }
}

function sum(counts: Iterable<number>): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}
