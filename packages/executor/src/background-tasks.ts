/**
 * The tasks of a run that sub-agents work on while it goes on: at most so many at a time, the others in the order of their calls. Which there
 * are, and which are over, the checkpoint says; here is what this execution of the run has to do with them. None outlives it.
 */
import {
  deepFreeze,
  storedError,
  type BackgroundTask,
  type DelegatedUsage,
  type ExecutionResult,
  type StoredBackgroundTask,
} from '@lousho/contract';
import { removeChildren } from './child-leftovers.ts';
import { childOrder, wordsOf } from './child-run.ts';
import { innerPauses } from './inner-pauses.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import { asDelegated, knownSpend, type OpenCall } from './next-action.ts';
import type { Run } from './run.ts';
import { abortedResult } from './run-result.ts';
import { givenUp, unlessAborted, type RunStop } from './run-stop.ts';
import { endedFacts, givenTask, openTasks, over, taskChildId } from './task-ledger.ts';
import { metadataOf } from './task-records.ts';
import {
  TaskForgotten,
  isOwnFailure,
  whyNotFinished,
  type TaskFacts,
  type TaskOutcome,
} from './task-result.ts';
import type { TaskArgs } from './task-tool.ts';
import { valueResult } from './tool-result.ts';

/** How a sub-agent came to rest. */
export type Rest =
  /** Finished, or stopped, or waiting for a person. */
  | { readonly type: 'result'; readonly result: ExecutionResult }
  | { readonly type: 'error'; readonly error: unknown }
  /** Cancelled by its lead: whatever it came to is not asked for. */
  | { readonly type: 'cancelled' }
  /** It goes on when its lead does. */
  | { readonly type: 'suspended' };

interface Work {
  readonly stop: RunStop;
  readonly rest: Promise<Rest>;
  readonly startedMs: number;
}

/** Where it came to. */
interface Moved extends Partial<Omit<BackgroundTask, 'taskId' | 'agent'>> {
  readonly spent?: DelegatedUsage | undefined;
}

/** By itself. */
const endStatuses: ReadonlySet<BackgroundTask['status']> = new Set(['finished', 'failed']);

export class BackgroundTasks {
  readonly #run: Run;
  /** By the ids of their checkpoints. */
  readonly #atWork = new Map<string, Work>();
  readonly #atRest = new Map<string, Rest>();
  /** Their calls have said that they run. */
  readonly #admitted = new Set<string>();
  /** Somebody waits for them. */
  readonly #wanted = new Map<string, ((rest: Rest) => void)[]>();
  #isSuspended = false;

  constructor(run: Run) {
    this.#run = run;
  }

  /** The result of a `task` call that does not wait. The task begins when that is part of the checkpoint. */
  give({ call, agent, taskId, childId }: TaskFacts, { index }: OpenCall, goesOnWith?: string): TaskOutcome {
    const isFree = this.#atWork.size + this.#admitted.size < this.#run.engine.maxConcurrentTasks;
    if (isFree) this.#admitted.add(childId);
    const status = isFree ? 'running' : 'queued';
    const ref = {
      ...{ taskId, agent, isBackground: true as const },
      ...(goesOnWith === undefined ? undefined : { goesOnWith }),
    };
    return {
      type: 'result',
      result: deepFreeze({
        ...valueResult(call, { taskId, status, agent }),
        providerMetadata: metadataOf(ref),
      }),
      given: { taskId, agent, status, step: this.#run.checkpoint.stepIndex, index },
    };
  }

  /** Whatever may begin, or go on, does. */
  goOn(): void {
    if (this.#isSuspended || this.#run.stop.current !== undefined) return;
    for (const task of openTasks(this.#run.checkpoint)) {
      if (this.#atWork.size >= this.#run.engine.maxConcurrentTasks) return;
      if (this.#isDue(task)) this.#begin(task);
    }
  }

  /** Resolves when it has come to rest, at once if it has. Never rejects. */
  async join(task: StoredBackgroundTask): Promise<Rest> {
    const id = this.#idOf(task);
    const known = this.#atRest.get(id) ?? this.#atWork.get(id)?.rest;
    if (known !== undefined) return known;
    const coming = new Promise<Rest>((resolve) => {
      this.#wanted.set(id, [...(this.#wanted.get(id) ?? []), resolve]);
    });
    this.goOn();
    const rest = await unlessAborted(this.#run.stop.requested, coming);
    if (rest !== givenUp) return rest;
    return (await this.#atWork.get(id)?.rest) ?? { type: 'suspended' };
  }

  /** Resolves when nothing of it runs any more. `false`: it had come to its end by itself. */
  async cancel(task: StoredBackgroundTask): Promise<boolean> {
    const id = this.#idOf(task);
    const work = this.#atWork.get(id);
    work?.stop.abort(new Error('The task was cancelled.'));
    await work?.rest;
    if (endStatuses.has(this.#stored(task).status)) return false;
    this.#atRest.set(id, { type: 'cancelled' });
    this.#wake(id, { type: 'cancelled' });
    return true;
  }

  /** What runs in them ends in its own time, nothing new begins: the run pauses, or it failed. What they spent is known then. */
  async suspend(): Promise<void> {
    this.#isSuspended = true;
    for (const { stop } of this.#atWork.values()) stop.suspend();
    await this.#allAtRest();
  }

  /**
   * The run could end: its tasks are waited for, or cancelled. Nothing of them is left.
   * @throws what rejects a task that is waited for
   */
  async end(): Promise<void> {
    const run = this.#run;
    if (run.engine.awaitBackgroundOnFinish) {
      const rests = await Promise.all(openTasks(run.checkpoint).map((task) => this.join(task)));
      if (run.stop.current !== undefined) return;
      for (const rest of rests) if (rest.type === 'error' && !isOwnFailure(rest.error)) throw rest.error;
    }
    await this.cancelAll();
  }

  async cancelAll(): Promise<void> {
    const run = this.#run;
    if (openTasks(run.checkpoint).length === 0) return;
    await Promise.all(openTasks(run.checkpoint).map((task) => this.cancel(task)));
    const ended = openTasks(run.checkpoint).map((task) => over(task));
    // 1. They are over, and what they spent is the run's. Crash behind it: whoever resumes the run removes what is left of them.
    await run.commit({ type: 'results', results: [], ...endedFacts(run, ended) });
    // 2. Their checkpoints.
    await removeChildren(
      run,
      ended.map((task) => this.#idOf(task)),
    );
  }

  /** As they are at this moment. */
  list(): readonly StoredBackgroundTask[] {
    const { backgroundTasks = [] } = this.#run.checkpoint;
    return backgroundTasks.map((task) => {
      const work = this.#atWork.get(this.#idOf(task));
      return work === undefined ? task : { ...task, elapsedMs: this.#elapsedMs(task, work.startedMs) };
    });
  }

  #isDue(task: StoredBackgroundTask): boolean {
    const id = this.#idOf(task);
    if (this.#atWork.has(id) || this.#atRest.has(id)) return false;
    // Whoever wants its answer gets it from there; a person is asked when somebody wants it.
    const isResting = task.status === 'finished' || task.status === 'awaiting-approval';
    return !isResting || this.#wanted.has(id);
  }

  #begin(task: StoredBackgroundTask): void {
    const run = this.#run;
    const id = this.#idOf(task);
    const stop = run.stop.inside();
    const startedMs = run.engine.ports.clock.monotonicMs();
    this.#admitted.delete(id);
    const { error: _error, ...known } = task;
    if (task.status !== 'running') run.fold({ type: 'taskMoved', task: { ...known, status: 'running' } });
    this.#atWork.set(id, { stop, startedMs, rest: this.#work(task, stop, startedMs) });
  }

  /** Never rejects. */
  async #work(task: StoredBackgroundTask, stop: RunStop, startedMs: number): Promise<Rest> {
    const id = this.#idOf(task);
    let rest = await this.#execute(task, stop);
    let moved: Moved = {};
    try {
      moved = await this.#movedTo(id, rest);
    } catch (error) {
      rest = { type: 'error', error };
    }
    stop.dispose();
    this.#atWork.delete(id);
    this.#atRest.set(id, rest);
    const { spent, ...facts } = moved;
    const run = this.#run;
    // Stored with whatever the run saves next; before that, its own checkpoint says so.
    if (spent !== undefined) run.fold({ type: 'childSpent', child: { checkpointId: id, usage: spent } });
    const { approvalId: _approvalId, toolName: _toolName, error: _error, ...known } = this.#stored(task);
    const elapsedMs = this.#elapsedMs(known, startedMs);
    run.fold({ type: 'taskMoved', task: { ...known, elapsedMs, ...facts } });
    this.#wake(id, rest);
    this.goOn();
    return rest;
  }

  async #execute(task: StoredBackgroundTask, stop: RunStop): Promise<Rest> {
    const run = this.#run;
    const { taskId, step, index } = task;
    const childId = this.#idOf(task);
    try {
      await run.ensureHeld();
      const stored = await loadCheckpoint(run.store, childId);
      // A person or the lead stopped it, in a process that died behind that: it stays so.
      if (stored?.status === 'in-progress' && stored.finishReason === 'aborted')
        return { type: 'result', result: abortedResult(stored, undefined, undefined) };
      const given = givenTask(run.checkpoint, task);
      if (given === undefined) throw new Error(`Invariant: no call gave the task ${taskId}`);
      const { call, ref } = given;
      const said = await wordsOf(run, { childId, taskId }, ref.goesOnWith);
      if (said.type === 'refused') return { type: 'error', error: new TaskForgotten(said.why) };
      const args = call.args as unknown as TaskArgs;
      const child = { call, step, index, args, stop, isCountedLive: false, said: said.messages };
      const result = await run.executeChild(childOrder(run, child));
      if (result === null) throw new Error(`Invariant: the sub-agent ${childId} gave no result`);
      return { type: 'result', result };
    } catch (error) {
      return stop.current?.type === 'shutdown' ? { type: 'suspended' } : { type: 'error', error };
    }
  }

  /** @throws what the store throws */
  async #movedTo(childId: string, rest: Rest): Promise<Moved> {
    const { store } = this.#run;
    if (rest.type === 'result') {
      const { result } = rest;
      const spent = asDelegated(result.usage);
      if (result.finishReason === 'aborted') return { spent, status: 'cancelled' };
      if (result.finishReason === 'awaiting-approval') {
        const [first] = await innerPauses(store, childId);
        const toolName = first && { toolName: first.call.toolName };
        return { spent, status: 'awaiting-approval', approvalId: result.approvalId, ...toolName };
      }
      const error = whyNotFinished(result);
      return error === undefined
        ? { spent, status: 'finished' }
        : { spent, status: 'failed', error: `The sub-agent ${error}.` };
    }
    const stored = await loadCheckpoint(store, childId);
    const spent = stored === null ? undefined : asDelegated(knownSpend(stored));
    return rest.type === 'error'
      ? { spent, status: 'failed', error: storedError(rest.error).message }
      : { spent };
  }

  #stored(task: StoredBackgroundTask): StoredBackgroundTask {
    return openTasks(this.#run.checkpoint).find((known) => this.#idOf(known) === this.#idOf(task)) ?? task;
  }

  #elapsedMs({ elapsedMs = 0 }: BackgroundTask, startedMs: number): number {
    return elapsedMs + this.#run.engine.ports.clock.monotonicMs() - startedMs;
  }

  async #allAtRest(): Promise<void> {
    await Promise.all([...this.#atWork.values()].map(({ rest }) => rest));
  }

  #wake(id: string, rest: Rest): void {
    const waiting = this.#wanted.get(id) ?? [];
    this.#wanted.delete(id);
    for (const resolve of waiting) resolve(rest);
  }

  #idOf(task: StoredBackgroundTask): string {
    return taskChildId(this.#run.checkpointId, this.#run.checkpoint, task);
  }
}
