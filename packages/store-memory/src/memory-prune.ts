/** What may go because it is old, and what must stay because somebody still needs it. */
import {
  classifyCheckpointId,
  ConfigurationError,
  transcriptCheckpointId,
  type Checkpoint,
  type CheckpointStatus,
  type Clock,
  type PruneOptions,
  type PruneResult,
} from '@lousho/contract';
import type { MemoryState } from './memory-state.ts';
import { statusOf } from './stored-status.ts';

/** What a prune takes, by its ids. */
export interface PrunableIds {
  readonly runIds: ReadonlySet<string>;
  readonly historyIds: readonly string[];
  readonly approvalIds: readonly string[];
  readonly sessionIds: readonly string[];
}

/**
 * Everything that is older, over all parts. Checkpoints decide: approvals and sessions only go when no run that stays needs them.
 * @throws synchronously LOUSHO_CONFIG_INVALID
 */
export function prunableIds(state: MemoryState, clock: Clock, options: PruneOptions): PrunableIds {
  const plan = resolvePlan(state, clock, options, 'all');
  const runIds = prunableRuns(state, plan);
  return {
    runIds,
    historyIds: prunableHistories(state, plan, runIds),
    approvalIds: prunableApprovals(state, plan, runIds),
    sessionIds: prunableSessions(state, plan, runIds),
  };
}

/** @throws synchronously LOUSHO_CONFIG_INVALID */
export function pruneStore(state: MemoryState, clock: Clock, options: PruneOptions): PruneResult {
  const ids = prunableIds(state, clock, options);
  const counts = countsOf(state, ids);
  if (options.dryRun !== true) {
    for (const id of ids.runIds) state.removeCheckpoint(id);
    for (const id of ids.historyIds) state.history.delete(id);
    for (const id of ids.approvalIds) state.approvals.delete(id);
    for (const id of ids.sessionIds) state.sessions.delete(id);
  }
  return counts;
}

export function countsOf(
  state: MemoryState,
  { runIds, historyIds, approvalIds, sessionIds }: PrunableIds,
): PruneResult {
  return {
    checkpoints: runIds.size,
    historyEntries: historyIds.reduce((count, id) => count + state.history.countOf(id), 0),
    approvals: approvalIds.length,
    sessions: sessionIds.length,
  };
}

/** Finished runs alone, with their history: what `retentionMs` promises. */
export function pruneFinishedRuns(state: MemoryState, clock: Clock, olderThanMs: number): void {
  for (const id of prunableRuns(state, resolvePlan(state, clock, { olderThanMs }, 'runs'))) {
    state.removeCheckpoint(id);
    state.history.delete(id);
  }
}

interface PrunePlan {
  readonly statuses: readonly CheckpointStatus[];
  /** `runs`: what a retention asks for. `all`: also approvals and sessions. */
  readonly scope: 'runs' | 'all';
  /** Ids that somebody executes. */
  readonly liveIds: ReadonlySet<string>;
  isOld(time: string): boolean;
}

function resolvePlan(
  state: MemoryState,
  clock: Clock,
  { olderThanMs, statuses = ['finished'] }: PruneOptions,
  scope: PrunePlan['scope'],
): PrunePlan {
  if (!(olderThanMs >= 0)) {
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'olderThanMs',
      got: olderThanMs,
      want: 'a number of milliseconds, 0 or more',
    });
  }
  const cutoffMs = clock.wallMs() - olderThanMs;
  return {
    statuses,
    scope,
    liveIds: state.leases.liveIds(clock.monotonicMs()),
    // A time that cannot be read is never old: better kept than lost.
    isOld: (time) => Date.parse(time) <= cutoffMs,
  };
}

/** Ids of old runs and of what is below them. */
function prunableRuns(state: MemoryState, plan: PrunePlan): Set<string> {
  const childrenOf = childrenByLead(state);
  const prunable = new Set<string>();
  for (const [id, checkpoint] of state.checkpoints) {
    const children = childrenOf.get(id) ?? [];
    const isNeeded = [id, ...children].some((one) => isInUse(state, plan, one));
    if (isNeeded || !plan.isOld(checkpoint.savedAt) || !mayGo(state, plan, id, checkpoint)) continue;
    for (const one of [id, ...children]) prunable.add(one);
  }
  return prunable;
}

function childrenByLead(state: MemoryState): ReadonlyMap<string, readonly string[]> {
  const children = new Map<string, string[]>();
  for (const id of state.checkpoints.keys()) {
    const kind = classifyCheckpointId(id);
    if (kind.kind !== 'child') continue;
    const siblings = children.get(kind.leadId);
    if (siblings === undefined) children.set(kind.leadId, [id]);
    else siblings.push(id);
  }
  return children;
}

function mayGo(state: MemoryState, plan: PrunePlan, id: string, checkpoint: Checkpoint): boolean {
  const kind = classifyCheckpointId(id);
  // The result of a sub-agent is its lead's to take: it goes with the lead, or when there is none.
  if (kind.kind === 'child') return !state.checkpoints.has(kind.leadId) && !plan.liveIds.has(kind.leadId);
  if (kind.kind === 'session' && statusOf(checkpoint) === 'finished' && !conversationGoes(state, plan, kind))
    return false;
  // The claim of a schedule is no run; old, it is only in the way.
  return plan.statuses.includes(statusOf(checkpoint)) || id.endsWith('.fire');
}

/** A turn that ended may not be in its transcript yet: its end is the conversation's to take. It goes with that, or when there is none. */
function conversationGoes(
  { checkpoints, sessions }: MemoryState,
  plan: PrunePlan,
  { sessionId }: { readonly sessionId: string },
): boolean {
  if (plan.scope === 'runs' || checkpoints.has(transcriptCheckpointId(sessionId))) return false;
  const session = sessions.get(sessionId);
  return session === undefined || plan.isOld(session.savedAt);
}

/** Somebody executes it, or a person has to decide about it. */
function isInUse(state: MemoryState, plan: PrunePlan, id: string): boolean {
  const checkpoint = state.checkpoints.get(id);
  return plan.liveIds.has(id) || (checkpoint !== undefined && undecidedIds(checkpoint).length > 0);
}

function undecidedIds({ approvals = [] }: Partial<Checkpoint>): string[] {
  return approvals.filter(({ decision }) => decision === undefined).map(({ id }) => id);
}

/** Those of the runs that go, and those that outlived their run and are old too. */
function prunableHistories(
  state: MemoryState,
  plan: PrunePlan,
  runIds: ReadonlySet<string>,
): readonly string[] {
  return [...state.history.ids()].filter((id) => {
    if (runIds.has(id)) return true;
    const [newest] = state.history.newestFirst(id, 1);
    const isLeftOver = !state.checkpoints.has(id) && !plan.liveIds.has(id);
    return isLeftOver && newest !== undefined && plan.isOld(newest.savedAt);
  });
}

/** Records that no run waits on any more. One that carries its run with it waits by itself. */
function prunableApprovals(
  state: MemoryState,
  plan: PrunePlan,
  runIds: ReadonlySet<string>,
): readonly string[] {
  const ids: string[] = [];
  for (const { id, checkpointId, createdAt, snapshot } of state.approvals.values()) {
    const checkpoint = state.checkpoints.get(checkpointId);
    const isWaitedOn = checkpoint !== undefined && undecidedIds(checkpoint).includes(id);
    const isOrphan = snapshot === undefined && !isWaitedOn && plan.isOld(createdAt);
    if (runIds.has(checkpointId) || (isOrphan && !plan.liveIds.has(checkpointId))) ids.push(id);
  }
  return ids;
}

/** Old conversations without a turn under way. They count as finished. */
function prunableSessions(
  state: MemoryState,
  plan: PrunePlan,
  runIds: ReadonlySet<string>,
): readonly string[] {
  if (!plan.statuses.includes('finished')) return [];
  const busy = new Set(plan.liveIds);
  for (const id of [...state.checkpoints.keys(), ...plan.liveIds]) {
    const kind = classifyCheckpointId(id);
    if (kind.kind === 'session' && !runIds.has(id)) busy.add(kind.sessionId);
  }
  const records = [...state.sessions.values()];
  return records.filter(({ id, savedAt }) => plan.isOld(savedAt) && !busy.has(id)).map(({ id }) => id);
}
