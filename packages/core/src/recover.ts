/** `agent.recover()`: looks at the store again and again, and finishes the runs that nobody executes any more. */
import {
  SDKError,
  assertNever,
  checkpointHeader,
  isSDKError,
  type ErrorCode,
  type ExecutionResult,
  type InProgressCheckpoint,
} from '@lousho/contract';
import { executePlan, isInLine, parkRun, type OrderPlan } from '@lousho/executor/wiring';
import type { AgentParts } from './agent-config.ts';
import type { LoopHandle, PendingRun, RecoverOptions } from './agent.ts';
import { decideInCode, denyExpired } from './approvals.ts';
import { LiveRuns } from './live-runs.ts';
import { unfinishedRuns, type UnfinishedHeader, type UnfinishedRun } from './pending-runs.ts';
import { resolveRecoverOptions, type ResolvedRecoverOptions } from './recover-options.ts';
import { decideRecovery, type RecoveryDecision, type RecoveryRules } from './recovery-decision.ts';
import { RecoveryNotes } from './recovery-notes.ts';
import { turnAt } from './session-turns.ts';

/** How long `stop()` waits for running calls. */
const STOP_TIMEOUT_MS = 10_000;

/** How long a run that was started before in vain keeps others of its kind waiting. */
const PROBATION_MS = 60_000;

/** @throws synchronously LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE, LOUSHO_CONFIG_INVALID, LOUSHO_SHUTDOWN */
export function startRecovery(parts: AgentParts, agentRuns: LiveRuns, options: RecoverOptions): LoopHandle {
  agentRuns.requireOpen();
  const resolved = resolveRecoverOptions(parts.checkpoints, options);
  const recovery = new Recovery(parts, new LiveRuns(parts.engine.ports.clock, agentRuns), resolved);
  const done = recovery.run();
  return {
    stop: ({ timeoutMs = STOP_TIMEOUT_MS } = {}) => recovery.stop(timeoutMs),
    done,
  };
}

/** A run with something to do, and what was decided when it was listed. */
interface DueRun {
  readonly run: PendingRun;
  readonly header: UnfinishedHeader;
  readonly decision: Exclude<RecoveryDecision, { type: 'leave' }>;
}

class Recovery {
  /** What the last look found and nobody has begun with; each look replaces it. */
  #due: DueRun[] = [];
  readonly #underWay = new Set<string>();
  readonly #callbacks = new Set<Promise<void>>();
  readonly #notes = new RecoveryNotes();
  /** The run that was started before in vain, and has not got anywhere yet this time. */
  #suspect: string | undefined;
  readonly #rules: RecoveryRules;

  constructor(
    readonly parts: AgentParts,
    readonly runs: LiveRuns,
    readonly options: ResolvedRecoverOptions,
  ) {
    this.#rules = { agentName: parts.name, ...options };
  }

  /** Resolves when everything has settled. */
  async run(): Promise<void> {
    const { signal, intervalMs, once } = this.options;
    const stop = (): void => void this.stop(STOP_TIMEOUT_MS);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true, signal: this.runs.closing });
    while (!this.runs.closing.aborted) {
      await this.#look();
      if (once) break;
      await this.#pause(intervalMs);
    }
    await this.#settled();
    if (once) await this.runs.shutDown(0);
  }

  /** What ends makes room for the next, so nothing under way means that nothing is left to begin with. */
  async #settled(): Promise<void> {
    do await this.runs.idle();
    while (this.#underWay.size > 0);
    while (this.#callbacks.size > 0) await Promise.all(this.#callbacks);
  }

  stop(timeoutMs: number): Promise<void> {
    return this.runs.shutDown(timeoutMs);
  }

  get #nowMs(): number {
    return this.parts.engine.ports.clock.wallMs();
  }

  async #look(): Promise<void> {
    let found: readonly UnfinishedRun[];
    try {
      found = await this.runs.during(unfinishedRuns(this.options.store));
    } catch (error) {
      if (!this.runs.closing.aborted) this.#report(error);
      return;
    }
    this.#notes.keepOnly(found);
    this.#due = found.flatMap((run) => this.#dueRun(run));
    this.#begin();
  }

  #dueRun(found: UnfinishedRun): readonly DueRun[] {
    const { run, header } = found;
    // A damaged record is for a person.
    if (header === null || this.#notes.isHopeless(run)) return [];
    const decision = decideRecovery(header, this.#rules, this.#nowMs, this.#notes.forgivenStarts(found));
    return decision.type === 'leave' ? [] : [{ run, header, decision }];
  }

  /** As many as there is room for. What ends makes room for the next. */
  #begin(): void {
    while (this.#underWay.size < this.options.concurrency && !this.runs.closing.aborted) {
      const next = this.#takeNext();
      if (next === undefined) return;
      const { checkpointId } = next.run;
      // This process executes it: no question to the store.
      if (this.#underWay.has(checkpointId) || isInLine(this.options.store, checkpointId)) continue;
      this.#underWay.add(checkpointId);
      void this.runs.during(this.#take(next)).finally(() => {
        this.#underWay.delete(checkpointId);
        this.#begin();
      });
    }
  }

  /** The oldest save first. Of the suspects, one at a time: what kills its process takes no other along, again and again, to be parked. */
  #takeNext(): DueRun | undefined {
    const mayBegin = (due: DueRun): boolean => this.#suspect === undefined || !isSuspect(due);
    const index = this.#due.findIndex(mayBegin);
    return index < 0 ? undefined : this.#due.splice(index, 1)[0];
  }

  /** Until it gets somewhere, or ends. One that hangs lets the others in after a while. */
  #beginProbation(checkpointId: string): { end(): void } {
    this.#suspect = checkpointId;
    const end = (): void => {
      cancel();
      if (this.#suspect !== checkpointId) return;
      this.#suspect = undefined;
      this.#begin();
    };
    const cancel = this.parts.engine.ports.clock.setTimer(end, PROBATION_MS, { keepAlive: false });
    return { end };
  }

  /** Never rejects. What was decided is decided again under the lease: others look at the same list. */
  async #take(due: DueRun): Promise<void> {
    const probation = isSuspect(due) ? this.#beginProbation(due.run.checkpointId) : undefined;
    try {
      await this.#act(due, () => probation?.end());
      this.#notes.drop(due.run);
    } catch (error) {
      const isSuspended = isSDKError(error, 'LOUSHO_SHUTDOWN') && this.runs.closing.aborted;
      if (isSuspended || isSomebodyElses(error)) return;
      this.#notes.add(due, error);
      this.#report(error, due.run);
    } finally {
      probation?.end();
    }
  }

  async #act(due: DueRun, onProgress: () => void): Promise<void> {
    const { run, header, decision } = due;
    switch (decision.type) {
      case 'resume':
        return this.#finished(run, await this.#resume(due, onProgress));
      case 'deny':
        for (const id of decision.approvalIds)
          this.#finished(run, await this.#decided(denyExpired(this.parts, this.runs, id)));
        return;
      case 'park': {
        const lastError = header.status === 'in-progress' ? header.lastError : undefined;
        if (await this.#park(due)) this.#report(exhausted(run, decision.starts, lastError), run);
        return;
      }
      default:
        return assertNever(decision);
    }
  }

  #resume(due: DueRun, onProgress: () => void): Promise<ExecutionResult | null> {
    const forgivenStarts = this.#notes.forgivenStarts(due);
    const isDue = this.#stillDue(due, 'resume');
    const request = { type: 'recover', isDue, forgivenStarts, onProgress } as const;
    return this.#decided(executePlan(this.#plan(due.run, request)));
  }

  /** The agent's own `approve` has its say. */
  async #decided(executed: Promise<ExecutionResult | null>): Promise<ExecutionResult | null> {
    const result = await executed;
    return result && decideInCode(this.parts, this.runs, result, {});
  }

  #plan({ checkpointId, sessionId }: PendingRun, request: OrderPlan['request']): OrderPlan {
    const { approvals, source, engine } = this.parts;
    return {
      checkpointId,
      sessionId,
      request,
      store: this.options.store,
      conversation: turnAt(this.parts, checkpointId),
      isEphemeral: false,
      approvals,
      source,
      engine,
      signal: undefined,
      whenBusy: 'refuse',
      leaseWaitMs: 0,
      onStart: (stop) => this.runs.add(stop),
    };
  }

  #park(due: DueRun): Promise<boolean> {
    const { engine } = this.parts;
    const isDue = this.#stillDue(due, 'park');
    return parkRun({ checkpointId: due.run.checkpointId, store: this.options.store, engine, isDue });
  }

  #stillDue(due: DueRun, type: RecoveryDecision['type']): (stored: InProgressCheckpoint) => boolean {
    const forgiven = this.#notes.forgivenStarts(due);
    return (stored) =>
      decideRecovery(checkpointHeader(stored), this.#rules, this.#nowMs, forgiven).type === type;
  }

  #finished(run: PendingRun, result: ExecutionResult | null): void {
    if (result === null || result.finishReason === 'awaiting-approval' || result.finishReason === 'aborted')
      return;
    this.#call(
      () => this.options.onRecovered(run, result),
      (error) => this.#report(error, run),
    );
  }

  #report(error: unknown, run?: PendingRun): void {
    this.#call(
      () => this.options.onError(error, run),
      (thrown) => console.error('lousho: onError of recover() threw; recovery goes on.', thrown),
    );
  }

  /** A callback holds nothing up, and changes nothing by failing. */
  #call(callback: () => void | Promise<void>, onThrown: (error: unknown) => void): void {
    const called = (async () => {
      try {
        await callback();
      } catch (error) {
        onThrown(error);
      }
    })();
    this.#callbacks.add(called);
    void called.finally(() => this.#callbacks.delete(called));
  }

  #pause(delayMs: number): Promise<void> {
    const { closing } = this.runs;
    return new Promise((resolve) => {
      if (closing.aborted) return resolve();
      const cancel = this.parts.engine.ports.clock.setTimer(() => {
        closing.removeEventListener('abort', end);
        resolve();
      }, delayMs);
      const end = (): void => {
        cancel();
        resolve();
      };
      closing.addEventListener('abort', end, { once: true });
    });
  }
}

/** It may have killed its process. So may what ran beside it. */
function isSuspect({ decision }: DueRun): boolean {
  return decision.type === 'resume' && decision.starts > 0;
}

/** Others were faster, or execute it: whatever there is to say about the run, they say it. */
const elsewhere: readonly ErrorCode[] = [
  'LOUSHO_SESSION_BUSY',
  'LOUSHO_APPROVAL_DECIDED',
  'LOUSHO_APPROVAL_ORPHANED',
  'LOUSHO_APPROVAL_NOT_FOUND',
];

function isSomebodyElses(error: unknown): boolean {
  return error instanceof SDKError && elsewhere.includes(error.code);
}

function exhausted(
  { sessionId }: PendingRun,
  starts: number,
  lastError: InProgressCheckpoint['lastError'],
): SDKError {
  return new SDKError('LOUSHO_RECOVERY_EXHAUSTED', {
    sessionId,
    starts,
    ...(lastError === undefined ? undefined : { lastError }),
  });
}
