/** Pruning: looks at everything once, decides, and removes one thing after the other, each only if it is still as it was. */
import type { Clock, PruneResult } from '@lousho/contract';
import type { EventLogs } from './event-logs.ts';
import type { FileApprovals } from './file-approvals.ts';
import type { FileLeases } from './file-leases.ts';
import type { CheckpointLists } from './file-lists.ts';
import type { FileSessions } from './file-sessions.ts';
import {
  decidePruning,
  type PruneDecision,
  type PrunePlan,
  type PruneSnapshot,
  type RunWithSaves,
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
    const { approvals, sessions } = this.#deps;
    const runs = dryRun ? decision.runs : await this.#removeRuns(decision);
    const wereRuns = runs.filter(({ state }) => state === 'whole');
    if (!dryRun) {
      for (const id of decision.approvalIds) await approvals.remove(id);
      for (const id of decision.sessionIds) await sessions.remove(id);
    }
    return {
      checkpoints: wereRuns.length,
      historyEntries: runs.reduce((sum, { saves }) => sum + Math.min(saves, this.#deps.historyLimit), 0),
      approvals: decision.approvalIds.length,
      sessions: decision.sessionIds.length,
    };
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

  async #removeRuns({ runs, leftovers }: PruneDecision): Promise<readonly RunWithSaves[]> {
    const removed: RunWithSaves[] = [];
    for (const run of runs) if (await this.#removeUnchanged(run.id, run.saves)) removed.push(run);
    for (const id of leftovers) await this.#removeUnchanged(id, 0);
    return removed;
  }

  /** Nobody took it and nobody saved since it was looked at. */
  async #removeUnchanged(id: string, saves: number): Promise<boolean> {
    const { removal, leases } = this.#deps;
    return removal.remove(id, {
      keepHistory: false,
      mayEnd: async (folder, listing) => !(await leases.isLive(folder, listing)),
      isWanted: (sealed) => (sealed?.state === 'whole' ? sealed.log.events.length : 0) === saves,
    });
  }
}
