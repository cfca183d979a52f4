/** What really happened in a simulated world, as nobody inside of it can know it: the state of the store and of everything outside. */
import type { Checkpoint, JsonValue } from '@lousho/contract';
import type { VirtualProcess } from './virtual-process.ts';

interface Holder {
  readonly process: VirtualProcess;
  readonly owner: string;
  readonly fence: number;
}
/** One checkpoint id. */
export interface RunFacts {
  readonly id: string;
  /** What every load must give now. */
  stored: Checkpoint | undefined;
  /** As it was when it was deleted. */
  deleted: Checkpoint | undefined;
  holder: Holder | undefined;
  highestFence: number;
}
/** One call of a tool, by run, step and id. */
export interface CallFacts {
  readonly starts: { readonly process: VirtualProcess; readonly fence: number | undefined }[];
  readonly keys: Set<string>;
  /** What it gave, each time that it ended. */
  readonly values: JsonValue[];
}
/** The model calls of one run, by its random id. */
export interface ModelFacts {
  asked: number;
  /** Calls that a caller's abort or steer cut: they count, and gave nothing. */
  dropped: number;
}

export class Facts {
  readonly runs = new Map<string, RunFacts>();
  readonly calls = new Map<string, CallFacts>();
  readonly #models = new Map<string, ModelFacts>();
  readonly #acknowledged = new Set<string>();
  /** Checkpoint ids by run id. */
  readonly #idOfRun = new Map<string, string>();
  /** Whose decision stands, by approval id. */
  readonly decidedBy = new Map<string, string | undefined>();
  /** Operations that were told that they had changed nothing. */
  readonly refused = new Set<string>();
  /** What each run's last usage was, and what it knew of sub-agents that had not given it a result, by its run id. */
  readonly usages = new Map<
    string,
    { readonly id: string } & Pick<Checkpoint, 'usage' | 'delegatedInFlight'>
  >();

  runOf(id: string): RunFacts {
    let run = this.runs.get(id);
    if (run === undefined) {
      run = { id, stored: undefined, deleted: undefined, holder: undefined, highestFence: 0 };
      this.runs.set(id, run);
    }
    return run;
  }

  /** `undefined` before the first save of the run. */
  runById(runId: string): RunFacts | undefined {
    const id = this.#idOfRun.get(runId);
    return id === undefined ? undefined : this.runs.get(id);
  }

  callOf(key: string): CallFacts {
    let call = this.calls.get(key);
    if (call === undefined) this.calls.set(key, (call = { starts: [], keys: new Set(), values: [] }));
    return call;
  }

  modelOf(runId: string): ModelFacts {
    let model = this.#models.get(runId);
    if (model === undefined) this.#models.set(runId, (model = { asked: 0, dropped: 0 }));
    return model;
  }

  noteAcknowledged(process: string, id: string, status: string, step: number): void {
    this.#acknowledged.add(`${process} ${id} ${status} ${step}`);
  }

  isAcknowledged(process: string, id: string, status: string, step: number): boolean {
    return this.#acknowledged.has(`${process} ${id} ${status} ${step}`);
  }

  noteSave(id: string, checkpoint: Checkpoint): void {
    const run = this.runOf(id);
    run.stored = checkpoint;
    run.deleted = undefined;
    this.#idOfRun.set(checkpoint.runId, id);
    const { usage, delegatedInFlight } = checkpoint;
    this.usages.set(checkpoint.runId, { id, usage, delegatedInFlight });
    for (const { id: approvalId, decision } of checkpoint.approvals)
      if (decision !== undefined) this.decidedBy.set(approvalId, decision.by);
  }

  noteDelete(id: string): void {
    // A store may take the sub-agents of a deleted run with it.
    for (const run of this.runs.values()) {
      if (run.id !== id && !run.id.startsWith(`${id}.sub-`)) continue;
      run.deleted = run.stored ?? run.deleted;
      run.stored = undefined;
      run.holder = undefined;
    }
  }
}

export function callKey(call: {
  readonly runId: string;
  readonly step: number;
  readonly toolCallId: string;
}): string {
  return `${call.runId} step ${call.step} ${call.toolCallId}`;
}
