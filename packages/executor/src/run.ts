/** One execution of a run: its state, and what every part of the loop needs to act on it. */
import {
  approvalIdInside,
  approvalIdOf,
  childCheckpointId,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointStore,
  type ExecutionResult,
  type JsonValue,
  type Message,
  type ModelFinishReason,
  type RunEnd,
  type SegmentInfo,
} from '@lousho/contract';
import { BackgroundTasks } from './background-tasks.ts';
import type { CheckpointWriter } from './checkpoint-writer.ts';
import type { Outcome } from './fold.ts';
import { nextAction, openCalls, tightest, type NextAction, type OpenCall } from './next-action.ts';
import type { HeldLease } from './lease-keeper.ts';
import type { AgentSource, ResolvedAgent } from './resolved-agent.ts';
import type { RunEvents } from './run-events.ts';
import type { RunInput } from './run-input.ts';
import type { Engine } from './run-options.ts';
import type { RunOrder } from './run-order.ts';
import type { RunStop } from './run-stop.ts';
import type { TaskPlace } from './task-place.ts';

export interface RunParts {
  /** The key in the store. */
  readonly checkpointId: string;
  /** What callers know it by; absent for a run without one. */
  readonly sessionId: string | undefined;
  readonly engine: Engine;
  readonly source: AgentSource;
  /** Who answers. */
  readonly agent: ResolvedAgent;
  readonly writer: CheckpointWriter;
  readonly store: CheckpointStore;
  readonly approvals: ApprovalStore | undefined;
  readonly lease: HeldLease | undefined;
  readonly events: RunEvents;
  readonly input: RunInput;
  readonly stop: RunStop;
  /** Whether somebody reads the words as they come. */
  readonly isStreaming: boolean;
  /** Whether the run was there before this execution. */
  readonly isResumed: boolean;
  /** Whether something may have executed it before: a fork is resumed, and nothing of it has begun. */
  readonly ranBefore: boolean;
  /** Whether its store dies with it. */
  readonly isEphemeral: boolean;
  /** Set for the run of a sub-agent. */
  readonly task?: TaskPlace | undefined;
  /** Executes the run of a sub-agent, as this one is executed. */
  readonly executeChild: (order: RunOrder) => Promise<ExecutionResult | null>;
  /** Whether it is a turn of a conversation: an abort then ends it. */
  readonly isTurn: boolean;
}

export class Run {
  readonly checkpointId: string;
  readonly sessionId: string | undefined;
  readonly engine: Engine;
  readonly source: AgentSource;
  readonly writer: CheckpointWriter;
  readonly store: CheckpointStore;
  readonly approvals: ApprovalStore | undefined;
  readonly events: RunEvents;
  readonly input: RunInput;
  readonly stop: RunStop;
  readonly isStreaming: boolean;
  readonly isResumed: boolean;
  readonly isEphemeral: boolean;
  readonly task: TaskPlace | undefined;
  readonly executeChild: RunParts['executeChild'];
  /** Checkpoints of sub-agents whose results are recorded, and that the store did not delete yet. */
  readonly leftovers = new Set<string>();
  /** What was said in tasks that no store keeps, by their records' ids. */
  readonly tasks = new Map<string, readonly Message[]>();
  /** What it gave to sub-agents in the background. */
  readonly background: BackgroundTasks;
  readonly isTurn: boolean;
  #agent: ResolvedAgent;
  readonly #ranBefore: boolean;
  readonly #opened: Pick<Checkpoint, 'runId' | 'stepIndex'>;
  readonly #lease: HeldLease | undefined;
  /** The segment before this one; the checkpoint names this one from its first save on. */
  readonly #linkTo: string | undefined;
  #segmentId: string | undefined;
  /** The caller's state as tools see and change it; recorded with the next results. */
  businessState: JsonValue | undefined;
  /** Why the model ended its last response. */
  lastFinishReason: ModelFinishReason = 'stop';
  /** What was heard of a reply that an abort cut. */
  cutReply = '';

  constructor(parts: RunParts) {
    this.checkpointId = parts.checkpointId;
    this.sessionId = parts.sessionId;
    this.engine = parts.engine;
    this.source = parts.source;
    this.#agent = parts.agent;
    this.writer = parts.writer;
    this.store = parts.store;
    this.approvals = parts.approvals;
    this.events = parts.events;
    this.input = parts.input;
    this.stop = parts.stop;
    this.isStreaming = parts.isStreaming;
    this.isResumed = parts.isResumed;
    this.#ranBefore = parts.ranBefore;
    this.isEphemeral = parts.isEphemeral;
    this.task = parts.task;
    this.executeChild = parts.executeChild;
    this.isTurn = parts.isTurn;
    const { runId, stepIndex, traceparent } = parts.writer.checkpoint;
    this.#opened = { runId, stepIndex };
    this.#linkTo = traceparent;
    this.#lease = parts.lease;
    this.businessState = this.#knownState();
    this.background = new BackgroundTasks(this);
  }

  get checkpoint(): Checkpoint {
    return this.writer.checkpoint;
  }

  /** Who answers: another one after a handoff. */
  get agent(): ResolvedAgent {
    return this.#agent;
  }

  /** In the same tick as the fold that says so. */
  takeOver(agent: ResolvedAgent): void {
    this.#agent = agent;
  }

  nextAction(): NextAction {
    const { maxSteps, limits, sessionLimits } = this.engine;
    return nextAction(this.checkpoint, {
      maxSteps,
      limits: tightest(limits, this.task?.limitsLeft()),
      sessionLimits,
    });
  }

  /** Of a run that ended its tasks behind its last response: what that said. Not stored, so after a crash in between it is `stop`. */
  endOf(reason: RunEnd): RunEnd {
    const { lastFinishReason: last } = this;
    return reason === 'stop' && last !== 'tool-calls' ? last : reason;
  }

  openCalls(): readonly OpenCall[] {
    return openCalls(this.checkpoint);
  }

  /** Whether the open calls were there when the run was resumed, so that a dead process may have begun them. */
  mayHaveBegun(): boolean {
    const { runId, stepIndex } = this.#opened;
    return this.#ranBefore && this.checkpoint.stepIndex === stepIndex && this.checkpoint.runId === runId;
  }

  fold(outcome: Outcome): Checkpoint {
    return this.writer.fold(outcome);
  }

  /** Folds, and resolves when the result is stored. */
  commit(outcome: Outcome): Promise<void> {
    this.writer.fold(outcome);
    return this.writer.save();
  }

  /** The approval of the call at this place, of the last step by default. */
  approvalId(index: number, step = this.checkpoint.stepIndex): string {
    const { runId } = this.checkpoint;
    return this.task === undefined
      ? approvalIdOf(this.checkpointId, { runId, step, index })
      : approvalIdInside(this.task.approvalId, { step, index });
  }

  /** Where the sub-agent is stored that the call at this place runs, of the last step by default. */
  childId(index: number, step = this.checkpoint.stepIndex): string {
    const { runId } = this.checkpoint;
    return childCheckpointId(this.checkpointId, { runId, step, index });
  }

  /** The caller's state if tools changed it since it was last recorded. */
  changedState(): JsonValue | undefined {
    return this.businessState === this.#knownState() ? undefined : this.businessState;
  }

  #knownState(): JsonValue | undefined {
    const { businessState } = this.checkpoint;
    return businessState === undefined ? this.task?.businessState : businessState;
  }

  /** Before every effect: `undefined` while the lease is surely ours. @throws LOUSHO_SESSION_BUSY when it is lost */
  ensureHeld(): Promise<void> | undefined {
    return this.#lease?.ensureHeld();
  }

  /** Until the time has passed or the run must stop. */
  sleep(delayMs: number): Promise<void> {
    return this.stop.sleep(delayMs);
  }

  /** Made when it is first asked for: a run that nobody traces needs none. */
  get segmentId(): string {
    return (this.#segmentId ??= this.engine.ports.ids.random());
  }

  segmentInfo(): SegmentInfo {
    const { checkpoint, task } = this;
    const { runId, stepIndex, forkedFrom } = checkpoint;
    const linkTo = this.#linkTo;
    return {
      segmentId: this.segmentId,
      runId,
      ...(this.sessionId === undefined ? undefined : { sessionId: this.sessionId }),
      agentName: this.agent.name,
      providerId: this.agent.provider.providerId,
      modelId: this.agent.model ?? this.agent.provider.modelId,
      resumed: this.isResumed,
      step: stepIndex,
      attempts: checkpoint.status === 'in-progress' ? (checkpoint.attempts ?? 0) : 0,
      ...(linkTo === undefined ? undefined : { linkTo }),
      ...(forkedFrom === undefined ? undefined : { forkedFrom }),
      ...(task === undefined ? undefined : { subagentPath: task.subagentPath, calledBy: task.calledBy() }),
    };
  }
}
