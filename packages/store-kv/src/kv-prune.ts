/**
 * What may go because it is old, and what must stay because somebody still needs it. The list only says where to look: it may be a
 * minute old, so each run that seems to be old is read, with its lease, before it goes.
 */
import {
  classifyCheckpointId,
  SDKError,
  transcriptCheckpointId,
  type Checkpoint,
  type CheckpointStatus,
  type Clock,
  type PruneOptions,
  type PruneResult,
} from '@lousho/contract';
import type { ApprovalMetadata } from './kv-approvals.ts';
import type { KVClient } from './kv-client.ts';
import { chunkKey, type KVKeys } from './kv-keys.ts';
import type { KVLeases } from './kv-leases.ts';
import type { KVSessions } from './kv-sessions.ts';
import { listAll, resolvePlan, type Listed, type PrunePlan } from './prune-plan.ts';
import { readMetadata } from './run-metadata.ts';
import type { TranscriptRecords } from './transcript-records.ts';

export interface PruneDeps {
  readonly client: KVClient;
  readonly keys: KVKeys;
  readonly clock: Clock;
  readonly records: TranscriptRecords<Checkpoint>;
  readonly leases: KVLeases;
  readonly sessions: KVSessions;
  /** The whole run, in its place among the saves of this handle. */
  readonly removeRun: (id: string) => Promise<void>;
}

/** @throws LOUSHO_CONFIG_INVALID */
export async function pruneKV(deps: PruneDeps, options: PruneOptions): Promise<PruneResult> {
  const plan = resolvePlan(options, deps.clock);
  const listed = await listAll(deps.client, deps.keys);
  const run = new Pruning(deps, plan, listed);
  const runIds = await run.oldRuns();
  const historyIds = await run.oldHistories();
  const approvalIds = await run.oldApprovals(runIds);
  const sessionIds = run.oldSessions(runIds);
  const strayKeys = await run.strayParts(new Set([...runIds, ...historyIds]));
  let historyEntries = 0;
  for (const id of [...runIds, ...historyIds]) historyEntries += listed.entries.get(id)?.count ?? 0;
  if (options.dryRun !== true) {
    for (const id of [...runIds, ...historyIds]) await deps.removeRun(id);
    await deps.client.deleteAll(approvalIds.map((id) => deps.keys.approval(id)));
    for (const id of sessionIds) await deps.sessions.remove(id);
    await deps.client.deleteAll(strayKeys);
  }
  return {
    checkpoints: runIds.length,
    historyEntries,
    approvals: approvalIds.length,
    sessions: sessionIds.length,
  };
}

/** A run as it is now. */
type Look =
  | { readonly kind: 'absent'; readonly isLive: boolean }
  /** Damaged or of a newer format: an operator restores or deletes it. */
  | { readonly kind: 'unreadable' }
  | {
      readonly kind: 'run';
      readonly isLive: boolean;
      readonly status: CheckpointStatus;
      readonly savedAt: string;
      readonly undecidedIds: readonly string[];
    };

class Pruning {
  readonly #looks = new Map<string, Promise<Look>>();

  constructor(
    private readonly deps: PruneDeps,
    private readonly plan: PrunePlan,
    private readonly listed: Listed,
  ) {}

  /** Ids of old runs and of what is below them. */
  async oldRuns(): Promise<readonly string[]> {
    const childrenOf = this.#childrenByLead();
    const prunable = new Set<string>();
    for (const [id, metadata] of this.listed.runs) {
      if (!this.#mayBeOld(id, metadata)) continue;
      const family = [id, ...(childrenOf.get(id) ?? [])];
      const [look, ...others] = await Promise.all(family.map((one) => this.#look(one)));
      if (look?.kind !== 'run' || !this.plan.isOld(look.savedAt) || ![look, ...others].every(isAtRest))
        continue;
      if (await this.#mayGo(id, look.status)) for (const one of family) prunable.add(one);
    }
    return [...prunable];
  }

  /** Histories that were kept when their run was deleted, and that are old. */
  async oldHistories(): Promise<readonly string[]> {
    const ids: string[] = [];
    for (const [id, { newest }] of this.listed.entries) {
      if (this.listed.runs.has(id) || !this.plan.isOld(newest)) continue;
      const look = await this.#look(id);
      if (look.kind === 'absent' && !look.isLive) ids.push(id);
    }
    return ids;
  }

  /** Records that no run waits on any more. One that carries its run with it waits by itself. */
  async oldApprovals(runIds: readonly string[]): Promise<readonly string[]> {
    const ids: string[] = [];
    for (const [id, metadata] of this.listed.approvals) {
      const record = metadata as ApprovalMetadata | null | undefined;
      if (!record) continue;
      const isOrphan = async (): Promise<boolean> => {
        if (record.hasSnapshot || !this.plan.isOld(record.createdAt)) return false;
        const look = await this.#look(record.checkpointId);
        return isAtRestOrAbsent(look, id);
      };
      if (runIds.includes(record.checkpointId) || (await isOrphan())) ids.push(id);
    }
    return ids;
  }

  /** Old conversations without a turn under way. They count as finished. */
  oldSessions(runIds: readonly string[]): readonly string[] {
    if (!this.plan.statuses.includes('finished')) return [];
    const busy = new Set<string>();
    for (const id of [...this.listed.runs.keys(), ...this.listed.leased]) {
      const kind = classifyCheckpointId(id);
      if (kind.kind === 'session' && !runIds.includes(id)) busy.add(kind.sessionId);
    }
    return [...this.listed.sessions]
      .filter(([id, savedAt]) => this.plan.isOld(savedAt) && !busy.has(id))
      .map(([id]) => id);
  }

  /** Keys of parts of runs that are gone, with their history: what a crash left. */
  async strayParts(goingIds: ReadonlySet<string>): Promise<readonly string[]> {
    const stray: string[] = [];
    for (const [id, parts] of this.listed.parts) {
      if (this.listed.runs.has(id) || this.listed.entries.has(id) || goingIds.has(id)) continue;
      if (!parts.every(({ writtenAtMs }) => this.plan.isOld(writtenAtMs))) continue;
      const look = await this.#look(id);
      if (look.kind !== 'absent' || look.isLive) continue;
      stray.push(...parts.map(({ name }) => chunkKey(this.deps.keys.run(id), name)));
    }
    return stray;
  }

  #look(id: string): Promise<Look> {
    const look = this.#looks.get(id) ?? lookAt(this.deps, id);
    this.#looks.set(id, look);
    return look;
  }

  /** Not worth a look: the list says that it was saved lately, or has another status. */
  #mayBeOld(id: string, metadata: unknown): boolean {
    const listed = readMetadata(metadata);
    if (listed === undefined) return true;
    const isChildOrFire = classifyCheckpointId(id).kind === 'child' || id.endsWith('.fire');
    return this.plan.isOld(listed.savedAt) && (isChildOrFire || this.plan.statuses.includes(listed.status));
  }

  async #mayGo(id: string, status: CheckpointStatus): Promise<boolean> {
    const kind = classifyCheckpointId(id);
    if (kind.kind === 'session' && status === 'finished' && !(await this.#conversationGoes(kind.sessionId)))
      return false;
    if (kind.kind !== 'child') {
      // The claim of a schedule is no run; old, it is only in the way.
      return this.plan.statuses.includes(status) || id.endsWith('.fire');
    }
    // The result of a sub-agent is its lead's to take: it goes with the lead, or when there is none.
    const lead = await this.#look(kind.leadId);
    return lead.kind === 'absent' && !lead.isLive;
  }

  /** A turn that ended may not be in its transcript yet: its end is the conversation's to take. It goes with that, or when there is none. */
  async #conversationGoes(sessionId: string): Promise<boolean> {
    if (this.listed.runs.has(transcriptCheckpointId(sessionId))) return false;
    const savedAt = await this.deps.sessions.savedAt(sessionId);
    return savedAt === undefined || this.plan.isOld(savedAt);
  }

  #childrenByLead(): ReadonlyMap<string, readonly string[]> {
    const children = new Map<string, string[]>();
    for (const id of this.listed.runs.keys()) {
      const kind = classifyCheckpointId(id);
      if (kind.kind === 'child') children.set(kind.leadId, [...(children.get(kind.leadId) ?? []), id]);
    }
    return children;
  }
}

async function lookAt({ records, leases }: PruneDeps, id: string): Promise<Look> {
  try {
    const [head, lease] = await Promise.all([records.headOf(id), leases.read(id)]);
    const isLive = leases.isLive(lease);
    if (head === undefined) return { kind: 'absent', isLive };
    const { status, savedAt, approvals } = head.value;
    const undecided = approvals.filter(({ decision }) => decision === undefined);
    return { kind: 'run', isLive, status, savedAt, undecidedIds: undecided.map(({ id: one }) => one) };
  } catch (error) {
    if (error instanceof SDKError) return { kind: 'unreadable' };
    throw error;
  }
}

/** Nobody executes it, and no person has to decide about it. */
function isAtRest(look: Look): boolean {
  if (look.kind === 'absent') return !look.isLive;
  return look.kind === 'run' && !look.isLive && look.undecidedIds.length === 0;
}

function isAtRestOrAbsent(look: Look, approvalId: string): boolean {
  if (look.kind === 'absent') return !look.isLive;
  return look.kind === 'run' && !look.isLive && !look.undecidedIds.includes(approvalId);
}
