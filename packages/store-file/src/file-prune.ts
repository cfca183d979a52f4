/** Pruning: looks at everything once, decides, and removes one thing after the other, each only if it is still as it was. */
import { turnCheckpointId, type Clock, type PruneResult } from '@lousho/contract';
import type { EventLogs } from './event-logs.ts';
import type { FileApprovals } from './file-approvals.ts';
import type { FileLeases } from './file-leases.ts';
import type { CheckpointLists } from './file-lists.ts';
import type { FileSessions } from './file-sessions.ts';
import type { SealedLog } from './generations.ts';
import {
  decidePruning,
  type PruneDecision,
  type PrunePlan,
  type PruneSnapshot,
  type RunWithSaves,
  type StoredSession,
} from './prune-decisions.ts';
import type { RunRemoval } from './run-removal.ts';

export interface PruningDeps {
  readonly clock: Clock;
  readonly historyLimit: number;
  readonly logs: EventLogs;
  readonly leases: FileLeases;
  readonly lists: CheckpointLists;
  readonly removal: RunRemoval;
  readonly approvals: FileApprovals;
  readonly sessions: FileSessions;
}

export class Pruning {
  readonly #deps: PruningDeps;

  constructor(deps: PruningDeps) {
    this.#deps = deps;
  }

  /** @param dryRun counts, removes nothing */
  async prune(plan: PrunePlan, dryRun: boolean): Promise<PruneResult> {
    const decision = decidePruning(await this.#snapshot(plan), plan);
    const { runs, approvals, sessions } = dryRun ? decision : await this.#remove(decision);
    return {
      checkpoints: runs.filter(({ state }) => state === 'whole').length,
      historyEntries: runs.reduce((sum, { saves }) => sum + Math.min(saves, this.#deps.historyLimit), 0),
      approvals: approvals.length,
      sessions: sessions.length,
    };
  }

  /** What went of it. */
  async #remove({ runs, leftovers, approvals, sessions }: PruneDecision): Promise<Gone> {
    const gone = {
      runs: await thatGo(runs, (run) => this.#removeUnchanged(run)),
      approvals: await thatGo(approvals, (record) => this.#deps.approvals.removeUnchanged(record)),
      sessions: await thatGo(sessions, (session) => this.#removeAtRest(session)),
    };
    for (const id of leftovers) await this.#removeUnchanged({ id, saves: 0, header: undefined });
    return gone;
  }

  async #snapshot(plan: PrunePlan): Promise<PruneSnapshot> {
    const { lists, leases, logs, approvals, sessions } = this.#deps;
    const runs = await lists.summaries();
    const liveIds = new Set<string>();
    for (const { id } of runs) {
      const folder = logs.folderOf(id);
      if (await leases.isLive(folder, await folder.list())) liveIds.add(id);
    }
    if (plan.scope === 'runs') return { runs, liveIds, approvals: [], sessions: [] };
    return { runs, liveIds, approvals: await approvals.all(), sessions: await sessions.savedAt() };
  }

  /** Nobody took it and nobody saved since it was looked at. */
  async #removeUnchanged(seen: SeenRun): Promise<boolean> {
    const { removal, leases } = this.#deps;
    return removal.remove(seen.id, {
      keepHistory: false,
      mayEnd: async (folder, listing) => !(await leases.isLive(folder, listing)),
      isWanted: (sealed) => savesOf(sealed) === seen.saves && savedAtMsOf(sealed) === seenAtMs(seen),
    });
  }

  /** Nobody has said anything since it was looked at, or is about to. */
  async #removeAtRest({ id, savedAtMs }: StoredSession): Promise<boolean> {
    const { sessions, logs, leases } = this.#deps;
    return sessions.remove(id, async ({ savedAt, turn }) => {
      if (Date.parse(savedAt) !== savedAtMs) return false;
      const turnId = turnCheckpointId(id, turn);
      const folder = logs.folderOf(turnId);
      return !(await leases.isLive(folder, await folder.list())) && (await logs.current(turnId)) === null;
    });
  }
}

type Gone = Pick<PruneDecision, 'runs' | 'approvals' | 'sessions'>;

/** Those that were there as they had been seen, one after the other. */
async function thatGo<Item>(
  items: readonly Item[],
  remove: (item: Item) => Promise<boolean>,
): Promise<readonly Item[]> {
  const gone: Item[] = [];
  for (const item of items) if (await remove(item)) gone.push(item);
  return gone;
}

/** A run as it was looked at; without a header one that had no save. */
type SeenRun = Pick<RunWithSaves, 'id' | 'saves'> & { readonly header: RunWithSaves['header'] | undefined };

function seenAtMs({ header }: SeenRun): number | undefined {
  return header === undefined ? undefined : Date.parse(header.savedAt);
}

function savesOf(sealed: SealedLog | undefined): number {
  return sealed?.state === 'whole' ? sealed.log.events.length : 0;
}

function savedAtMsOf(sealed: SealedLog | undefined): number | undefined {
  const last = sealed?.state === 'whole' ? sealed.log.events.at(-1) : undefined;
  return typeof last?.t === 'string' ? Date.parse(last.t) : last?.t;
}
