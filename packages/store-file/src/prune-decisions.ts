/** What may go because it is old, and what must stay because somebody still needs it. Decides by what was read, and reads nothing. */
import {
  ConfigurationError,
  classifyCheckpointId,
  transcriptCheckpointId,
  type ApprovalRecord,
  type CheckpointHeader,
  type CheckpointStatus,
  type Clock,
  type PruneOptions,
} from '@lousho/contract';
import type { RunSummary } from './header-reader.ts';

export interface PrunePlan {
  readonly cutoffMs: number;
  readonly statuses: ReadonlySet<CheckpointStatus>;
  /** `runs`: what a retention asks for. `all`: also approvals and sessions. */
  readonly scope: 'runs' | 'all';
}

/** What is stored. */
export interface PruneSnapshot {
  readonly runs: readonly RunSummary[];
  /** Ids that somebody may be executing. */
  readonly liveIds: ReadonlySet<string>;
  readonly approvals: readonly ApprovalRecord[];
  readonly sessions: readonly StoredSession[];
}

export interface StoredSession {
  readonly id: string;
  readonly savedAtMs: number;
}

export interface PruneDecision {
  readonly runs: readonly RunWithSaves[];
  /** What deleted runs and leases left. */
  readonly leftovers: readonly string[];
  readonly approvals: readonly ApprovalRecord[];
  readonly sessions: readonly StoredSession[];
}

export type RunWithSaves = Extract<RunSummary, { readonly state: 'whole' | 'gone' }>;

/** @throws synchronously LOUSHO_CONFIG_INVALID */
export function resolvePlan({ olderThanMs, statuses = ['finished'] }: PruneOptions, clock: Clock): PrunePlan {
  if (!(olderThanMs >= 0)) {
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'olderThanMs',
      got: olderThanMs,
      want: 'a number of milliseconds, 0 or more',
    });
  }
  return { cutoffMs: clock.wallMs() - olderThanMs, statuses: new Set(statuses), scope: 'all' };
}

export function decidePruning(snapshot: PruneSnapshot, plan: PrunePlan): PruneDecision {
  const byId = new Map(snapshot.runs.map((run) => [run.id, run]));
  const childrenOf = childrenByLead(snapshot.runs);
  const going = new Map<string, RunWithSaves>();
  for (const run of snapshot.runs) {
    if (!isPrunable(run, { snapshot, plan, byId, childrenOf })) continue;
    // A sub-agent goes with its lead.
    for (const one of [run, ...(childrenOf.get(run.id) ?? [])]) if (hasSaves(one)) going.set(one.id, one);
  }
  const leftovers = snapshot.runs.filter(({ state, id }) => state === 'none' && !snapshot.liveIds.has(id));
  return {
    runs: [...going.values()],
    leftovers: leftovers.map(({ id }) => id),
    approvals: plan.scope === 'all' ? prunableApprovals(snapshot, plan, { byId, going }) : [],
    sessions: plan.scope === 'all' ? prunableSessions(snapshot, plan, going) : [],
  };
}

interface Context {
  readonly snapshot: PruneSnapshot;
  readonly plan: PrunePlan;
  readonly byId: ReadonlyMap<string, RunSummary>;
  readonly childrenOf: ReadonlyMap<string, readonly RunSummary[]>;
}

function isPrunable(run: RunSummary, { snapshot, plan, byId, childrenOf }: Context): boolean {
  // A damaged run is not judged: an operator restores or deletes it.
  if (!hasSaves(run) || snapshot.liveIds.has(run.id)) return false;
  if (!isOld(run.header.savedAt, plan)) return false;
  if (run.state === 'gone') return plan.scope === 'all';
  const children = childrenOf.get(run.id) ?? [];
  if ([run, ...children].some((one) => isInUse(one, snapshot))) return false;
  const kind = classifyCheckpointId(run.id);
  // The result of a sub-agent is its lead's to take; it goes with the lead, or when there is none.
  if (kind.kind === 'child') return !isStored(byId.get(kind.leadId)) && !snapshot.liveIds.has(kind.leadId);
  if (
    kind.kind === 'session' &&
    run.header.status === 'finished' &&
    !conversationGoes(kind, { snapshot, plan, byId })
  )
    return false;
  // The claim of a schedule is no run; old, it is only in the way.
  return plan.statuses.has(run.header.status) || run.id.endsWith('.fire');
}

/** A turn that ended may not be in its transcript yet: its end is the conversation's to take. It goes with that, or when there is none. */
function conversationGoes(
  { sessionId }: { readonly sessionId: string },
  { snapshot, plan, byId }: Pick<Context, 'snapshot' | 'plan' | 'byId'>,
): boolean {
  if (plan.scope === 'runs' || byId.has(transcriptCheckpointId(sessionId))) return false;
  const session = snapshot.sessions.find(({ id }) => id === sessionId);
  return session === undefined || session.savedAtMs <= plan.cutoffMs;
}

function childrenByLead(runs: readonly RunSummary[]): ReadonlyMap<string, readonly RunSummary[]> {
  const children = new Map<string, RunSummary[]>();
  for (const run of runs) {
    // Each lead on the way down: a sub-agent may have sub-agents.
    for (let at = run.id.indexOf(CHILD_MARK); at !== -1; at = run.id.indexOf(CHILD_MARK, at + 1)) {
      const leadId = run.id.slice(0, at);
      const siblings = children.get(leadId);
      if (siblings === undefined) children.set(leadId, [run]);
      else siblings.push(run);
    }
  }
  return children;
}

const CHILD_MARK = '.sub-';

function hasSaves(run: RunSummary): run is RunWithSaves {
  return run.state === 'whole' || run.state === 'gone';
}

function isStored(run: RunSummary | undefined): boolean {
  return run?.state === 'whole' || run?.state === 'damaged';
}

/** Somebody executes it, or a person has to decide about it. */
function isInUse(run: RunSummary, { liveIds }: PruneSnapshot): boolean {
  return liveIds.has(run.id) || (run.state === 'whole' && isWaiting(run.header));
}

function isWaiting(header: CheckpointHeader): boolean {
  if (undecidedIds(header).length > 0) return true;
  return header.status === 'awaiting-approval' && header.approvals.length === 0;
}

function undecidedIds({ approvals }: CheckpointHeader): readonly string[] {
  return approvals.filter(({ decision }) => decision === undefined).map(({ id }) => id);
}

/** Records that no run waits on any more. One that carries its run with it waits by itself. */
function prunableApprovals(
  { approvals, liveIds }: PruneSnapshot,
  plan: PrunePlan,
  { byId, going }: Pick<Context, 'byId'> & { readonly going: ReadonlyMap<string, RunWithSaves> },
): readonly ApprovalRecord[] {
  return approvals.filter(({ id, checkpointId, createdAt, snapshot }) => {
    if (going.get(checkpointId)?.state === 'whole') return true;
    const run = byId.get(checkpointId);
    const isWaitedOn =
      run?.state === 'damaged' || (run?.state === 'whole' && undecidedIds(run.header).includes(id));
    return snapshot === undefined && !isWaitedOn && !liveIds.has(checkpointId) && isOld(createdAt, plan);
  });
}

/** Old conversations without a turn under way, and without one that stays. They count as finished. */
function prunableSessions(
  { runs, liveIds, sessions }: PruneSnapshot,
  plan: PrunePlan,
  going: ReadonlyMap<string, RunWithSaves>,
): readonly StoredSession[] {
  if (!plan.statuses.has('finished')) return [];
  const busy = new Set(liveIds);
  const staying = runs.filter((run) => isStored(run) && !going.has(run.id)).map(({ id }) => id);
  for (const id of [...staying, ...liveIds]) {
    const kind = classifyCheckpointId(id);
    if (kind.kind === 'session') busy.add(kind.sessionId);
  }
  return sessions.filter(({ id, savedAtMs }) => savedAtMs <= plan.cutoffMs && !busy.has(id));
}

/** A time that cannot be read is never old: better kept than lost. */
function isOld(time: string, { cutoffMs }: PrunePlan): boolean {
  return Date.parse(time) <= cutoffMs;
}
