/** What a crash sweep is given, and what it gives back. */
import type { AgentStore, CheckpointHistoryEntry, CheckpointListEntry, Ports } from '@lousho/contract';

/** What stays when a process "dies", and what each new one gets. */
export interface CrashWorld {
  /** Dies at the planned call: this call and all later ones of this process never settle. */
  readonly store: AgentStore;
  /** Waiting on this clock costs no time. Its timers die with the process. Each restart finds it 10 minutes later. */
  readonly ports: Ports;
  /** 0 for the first process, 1 after the crash, ... */
  readonly restart: number;
  /**
   * Called by the scenario's tools: notes an effect on the world outside, before and behind which the process dies, too. Named like its tool and called once a run of it, the sweep
   * knows how often it may happen. What a dead process still calls does not count.
   */
  readonly effect: (name: string) => void;
}
export interface CrashPoint {
  /** For example `saveIfLeased#3`; calls of the other parts begin with `approvals.` or `sessions.`; `effect charge#1` is what a tool did. */
  readonly call: string;
  readonly when: 'before' | 'after';
}
export interface CrashOutcome {
  /** Absent for the control run without a crash. */
  readonly crashPoint?: CrashPoint;
  /** Effects by name: how often each. */
  readonly effects: ReadonlyMap<string, number>;
  readonly checkpoints: readonly CheckpointListEntry[];
  /** Of all these checkpoints, newest first within each. */
  readonly history: readonly CheckpointHistoryEntry[];
}
export interface CrashScenario {
  /** Empty storage that outlives the processes of one crash, closed in the end. Default: `referenceStore` on the clock of `ports`. */
  createStore?(ports: Ports): AgentStore | Promise<AgentStore>;
  /** `'finished'`: every run must be, and nobody may be asked for an approval any more. Default `'finished'`. */
  readonly ends?: 'finished' | 'any' | undefined;
  /** Drives the work to its end. Called again in a new process after the crash, on the same data; also when it rejects there. */
  run(world: CrashWorld): Promise<void>;
  /** Throws when something is wrong. The general promises (one result a call, recorded results never run again, ...) are checked anyway. */
  check?(outcome: CrashOutcome): void | Promise<void>;
}
export interface CrashReport {
  /** Crash points: two for each store call and each effect of the control run. */
  readonly points: number;
  readonly failures: readonly { readonly point: CrashPoint; readonly message: string }[];
}
