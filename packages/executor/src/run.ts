/** One execution of a run: its state, and what every part of the loop needs to act on it. */
import type { ApprovalStore, Checkpoint, JsonValue, SegmentInfo } from '@lousho/contract';
import type { CheckpointWriter } from './checkpoint-writer.ts';
import type { Outcome } from './fold.ts';
import { openCalls, type OpenCall } from './next-action.ts';
import type { HeldLease } from './lease-keeper.ts';
import type { ResolvedAgent } from './resolved-agent.ts';
import type { RunEvents } from './run-events.ts';
import type { RunInput } from './run-input.ts';
import type { Engine } from './run-options.ts';
import { unlessAborted, type RunStop } from './run-stop.ts';

export interface RunParts {
  /** The key in the store. */
  readonly checkpointId: string;
  /** What callers know it by; absent for a run without one. */
  readonly sessionId: string | undefined;
  readonly engine: Engine;
  readonly agent: ResolvedAgent;
  readonly writer: CheckpointWriter;
  readonly approvals: ApprovalStore | undefined;
  readonly lease: HeldLease | undefined;
  readonly events: RunEvents;
  readonly input: RunInput;
  readonly stop: RunStop;
  /** Whether somebody reads the words as they come. */
  readonly isStreaming: boolean;
  /** Whether the run was there before this execution. */
  readonly isResumed: boolean;
  /** Whether its store dies with it. */
  readonly isEphemeral: boolean;
}

export class Run {
  readonly checkpointId: string;
  readonly sessionId: string | undefined;
  readonly engine: Engine;
  readonly agent: ResolvedAgent;
  readonly writer: CheckpointWriter;
  readonly approvals: ApprovalStore | undefined;
  readonly events: RunEvents;
  readonly input: RunInput;
  readonly stop: RunStop;
  readonly isStreaming: boolean;
  readonly isResumed: boolean;
  readonly isEphemeral: boolean;
  readonly #opened: Pick<Checkpoint, 'runId' | 'stepIndex'>;
  readonly #lease: HeldLease | undefined;
  /** The caller's state as tools see and change it; recorded with the next results. */
  businessState: JsonValue | undefined;

  constructor(parts: RunParts) {
    this.checkpointId = parts.checkpointId;
    this.sessionId = parts.sessionId;
    this.engine = parts.engine;
    this.agent = parts.agent;
    this.writer = parts.writer;
    this.approvals = parts.approvals;
    this.events = parts.events;
    this.input = parts.input;
    this.stop = parts.stop;
    this.isStreaming = parts.isStreaming;
    this.isResumed = parts.isResumed;
    this.isEphemeral = parts.isEphemeral;
    const { runId, stepIndex } = parts.writer.checkpoint;
    this.#opened = { runId, stepIndex };
    this.#lease = parts.lease;
    this.businessState = parts.writer.checkpoint.businessState;
  }

  get checkpoint(): Checkpoint {
    return this.writer.checkpoint;
  }

  openCalls(): readonly OpenCall[] {
    return openCalls(this.checkpoint);
  }

  /** Whether the open calls were there when the run was resumed, so that a dead process may have begun them. */
  mayHaveBegun(): boolean {
    const { runId, stepIndex } = this.#opened;
    return this.isResumed && this.checkpoint.stepIndex === stepIndex && this.checkpoint.runId === runId;
  }

  fold(outcome: Outcome): Checkpoint {
    return this.writer.fold(outcome);
  }

  /** Folds, and resolves when the result is stored. */
  commit(outcome: Outcome): Promise<void> {
    this.writer.fold(outcome);
    return this.writer.save();
  }

  /** Before every effect: `undefined` while the lease is surely ours. @throws LOUSHO_SESSION_BUSY when it is lost */
  ensureHeld(): Promise<void> | undefined {
    return this.#lease?.ensureHeld();
  }

  /** Until the time has passed or the run must stop. */
  async sleep(delayMs: number): Promise<void> {
    let cancel: (() => void) | undefined;
    const timePassed = new Promise<void>((resolve) => {
      cancel = this.engine.ports.clock.setTimer(resolve, delayMs);
    });
    await unlessAborted(this.stop.requested, timePassed);
    cancel?.();
  }

  segmentInfo(): SegmentInfo {
    const { runId, stepIndex, traceparent, forkedFrom, ...rest } = this.checkpoint;
    return {
      runId,
      ...(this.sessionId === undefined ? undefined : { sessionId: this.sessionId }),
      agentName: this.agent.name,
      providerId: this.agent.provider.providerId,
      modelId: this.agent.model ?? this.agent.provider.modelId,
      resumed: this.isResumed,
      step: stepIndex,
      attempts: rest.status === 'in-progress' ? (rest.attempts ?? 0) : 0,
      ...(traceparent === undefined ? undefined : { linkTo: traceparent }),
      ...(forkedFrom === undefined ? undefined : { forkedFrom }),
    };
  }
}
