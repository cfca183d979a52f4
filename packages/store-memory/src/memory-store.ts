/** A store in the memory of this process: complete, fast, and gone with it. */
import {
  CONTRACT_VERSION,
  resolvePorts,
  requireKnownOptions,
  resolveStoreOptions,
  storeOptionNames,
  type Clock,
  type FullAgentStore,
  type StoreOptions,
} from '@lousho/contract';
import { memoryApprovals } from './memory-approvals.ts';
import { memoryCheckpoints, type WholeStore } from './memory-checkpoints.ts';
import { MemoryHistory } from './memory-history.ts';
import { pruneFinishedRuns, pruneStore } from './memory-prune.ts';
import { memorySessions } from './memory-sessions.ts';
import { MemoryState } from './memory-state.ts';

/**
 * Checkpoints with history, list, atomic leases and fenced saves; approvals; sessions. Values given frozen are shared, not copied;
 * values returned are frozen. `historyMaxBytes` counts what the history alone holds, by an estimate.
 * Claims: atomic leases, memory, strong. @throws synchronously LOUSHO_CONFIG_INVALID
 */
export function memoryStore(options: StoreOptions = {}): FullAgentStore {
  requireKnownOptions('', options, storeOptionNames);
  const { retentionMs, ...historyLimits } = resolveStoreOptions(options);
  const { clock } = resolvePorts(options.ports);
  const state = new MemoryState(new MemoryHistory(historyLimits));
  const wholeStore: WholeStore = {
    async prune(pruneOptions) {
      state.assertOpen('prune');
      return pruneStore(state, clock, pruneOptions);
    },
    async close() {
      state.close();
    },
    async [Symbol.asyncDispose]() {
      state.close();
    },
  };
  const afterSave = retentionMs === undefined ? () => undefined : retention(state, clock, retentionMs);
  return {
    contractVersion: CONTRACT_VERSION,
    checkpoints: memoryCheckpoints({ state, clock, afterSave }, wholeStore),
    approvals: memoryApprovals(state),
    sessions: memorySessions(state),
    ...wholeStore,
  };
}

/** Often enough that nothing stays a tenth longer than it should, and not more often than a look at every run is worth. */
const LONGEST_SWEEP_MS = 60 * 60_000;

/** Drops old finished runs now and then while runs are saved. */
function retention(state: MemoryState, clock: Clock, retentionMs: number): () => void {
  const everyMs = Math.min(retentionMs / 10, LONGEST_SWEEP_MS);
  let nextSweepMs = clock.monotonicMs() + everyMs;
  return () => {
    if (clock.monotonicMs() < nextSweepMs) return;
    nextSweepMs = clock.monotonicMs() + everyMs;
    pruneFinishedRuns(state, clock, retentionMs);
  };
}
