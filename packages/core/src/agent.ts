/** The object that applications hold. */
import type {
  AgentInput,
  AgentRun,
  ApprovalDecision,
  ApprovalKind,
  ApprovalRequest,
  ExecutionResult,
  FinishedResult,
  ModelSettings,
  PendingKind,
  StoredError,
} from '@lousho/contract';
import type { ForkOptions, ForkResult, InputOptions } from '@lousho/executor';
import type { AgentSession, SessionOptions } from './agent-session.ts';
import type { FireOptions, Schedule, ScheduleOptions } from './schedule.ts';

export interface SendOptions extends InputOptions {
  /** Makes the run durable: 1-200 characters of `A-Za-z0-9_.-`. */
  readonly sessionId?: string | undefined;
  /** Override the agent's for this run. */
  readonly maxSteps?: number | undefined;
  readonly modelSettings?: ModelSettings | undefined;
  readonly approvalTtlMs?: number | undefined;
}
export interface AbortOptions {
  readonly signal?: AbortSignal | undefined;
}
export interface ResumeOptions extends AbortOptions {
  /** Which one, when a session and a run have the same id. Default: the session first. */
  readonly kind?: PendingKind | undefined;
}

export interface DiscardOptions {
  /** Which one, when a session and a run have the same id. Default: the unfinished turn of the session first. */
  readonly kind?: PendingKind | undefined;
}

interface PendingBase {
  /** What `agent.resume` takes. */
  readonly sessionId: string;
  readonly kind: PendingKind;
  readonly checkpointId: string;
  readonly runId?: string;
  readonly agentName?: string;
  readonly step: number;
  readonly savedAt?: string;
}
/** Interrupted, failed, aborted, or executing right now. */
export interface InterruptedRun extends PendingBase {
  readonly status: 'in-progress';
  readonly approvalId?: never;
  readonly approvalIds?: never;
  readonly approvalKind?: never;
  /** The last attempt failed with it. Absent: a crash, or still running. */
  readonly lastError?: StoredError;
  /** Failed attempts in a row. */
  readonly attempts?: number;
  /** A person stopped it; `recover()` leaves it alone. */
  readonly aborted?: true;
  /** `recover()` gave up on it. */
  readonly parked?: true;
}
export interface PausedRun extends PendingBase {
  readonly status: 'awaiting-approval';
  readonly approvalId: string;
  readonly approvalIds: readonly string[];
  readonly approvalKind: ApprovalKind;
  readonly lastError?: never;
  readonly attempts?: never;
  readonly aborted?: never;
  readonly parked?: never;
}
export type PendingRun = InterruptedRun | PausedRun;

export interface RecoverOptions {
  /** From the end of one look at the store to the next. Default 30,000; the first look is at once. */
  readonly intervalMs?: number | undefined;
  /** Runs at a time. Default 4. */
  readonly concurrency?: number | undefined;
  /** Starts without progress before a run is parked. Default 10. */
  readonly maxAttempts?: number | undefined;
  /** Needed on a store whose reads may be stale: only runs at rest for 90 seconds are touched. */
  readonly eventualConsistency?: boolean | undefined;
  /** One look: ends by itself when what it found has ended. For a cron job. Default `false`. */
  readonly once?: boolean | undefined;
  /** As `stop()`. */
  readonly signal?: AbortSignal | undefined;
  /** A run that it finished. */
  readonly onRecovered?: ((run: PendingRun, result: FinishedResult) => void | Promise<void>) | undefined;
  /** A look at the store that failed (`run` absent), a run that failed or was parked, or an `onRecovered` that threw. */
  readonly onError?: ((error: unknown, run?: PendingRun) => void | Promise<void>) | undefined;
}
/** A loop in the background. */
export interface LoopHandle {
  /**
   * Starts nothing new and suspends what it runs: running calls have `timeoutMs` (default 10,000) to end and are recorded, nothing is
   * recorded as cancelled, leases are released. Never rejects.
   */
  stop(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
  /** Resolves when the loop has stopped and everything settled, its callbacks included. Never rejects. */
  readonly done: Promise<void>;
}

export interface Approvals {
  /** What waits for a person, oldest first. */
  list(options?: { readonly sessionId?: string | undefined }): Promise<readonly ApprovalRequest[]>;
  /** `undefined` for an id that is malformed, unknown or decided. */
  get(id: string): Promise<ApprovalRequest | undefined>;
  /**
   * Decides, and continues the run when it was the last open decision; otherwise resolves `awaiting-approval` with the rest.
   * @throws LOUSHO_APPROVAL_NOT_FOUND, LOUSHO_APPROVAL_DECIDED, LOUSHO_APPROVAL_ORPHANED, LOUSHO_TOOL_ARGS_INVALID, LOUSHO_SESSION_BUSY,
   * LOUSHO_AGENT_DRIFT, LOUSHO_RESUME_TOOL_MISSING, LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE; but for the first three the approval stays
   * pending
   */
  resolve(decision: ApprovalDecision, options?: AbortOptions): Promise<ExecutionResult>;
  /** `resolve` for a question: the answer is what the model reads. @throws what `resolve` does */
  answer(
    decision: { readonly id: string; readonly answer: string; readonly by?: string | undefined },
    options?: AbortOptions,
  ): Promise<ExecutionResult>;
  /** `resolve` with events; ends at the next pause, also with an `approve`. */
  streamResolve(decision: ApprovalDecision, options?: AbortOptions): AgentRun;
}

export interface Agent {
  readonly name: string;
  /**
   * Starts, continues or resumes the run of `sessionId`, and resolves when it finished, paused or was aborted.
   * Calls with one id wait for each other in this process.
   * @throws SessionAwaitingApprovalError, LOUSHO_SESSION_BUSY, LOUSHO_SESSION_ID_INVALID, LOUSHO_INPUT_EMPTY,
   * LOUSHO_CONFIG_*, LOUSHO_CHECKPOINT_*, LOUSHO_AGENT_DRIFT, LOUSHO_RESUME_TOOL_MISSING, LOUSHO_PROVIDER_ERROR,
   * LOUSHO_STORE_*, LOUSHO_SHUTDOWN, and whatever a hook or a `PropagatingToolError` threw
   */
  send(input: AgentInput, options?: SendOptions): Promise<ExecutionResult>;
  /** Wrong options throw synchronously. `stream([], { sessionId })` resumes. */
  stream(input: AgentInput, options?: SendOptions): AgentRun;
  /** Continues an unfinished run or session turn; `null` when there is none. Busy at once, it never waits. */
  resume(sessionId: string, options?: ResumeOptions): Promise<ExecutionResult | null>;
  /**
   * Drops a run, in whatever state and also a damaged one, or the unfinished turn of a session, with its sub-agents and approvals. `false`
   * when there is none. @throws LOUSHO_SESSION_BUSY while it executes; then nothing is gone
   */
  discard(sessionId: string, options?: DiscardOptions): Promise<boolean>;
  /**
   * For what is delivered at least once, such as a webhook: starts, joins or finishes the run of `id`, or gives the stored result of a
   * finished or paused one. Any number of callers, one run.
   * @throws what `send` does but SessionAwaitingApprovalError; LOUSHO_SESSION_BUSY while another process executes it
   */
  runOnce(id: string, input: AgentInput, options?: Omit<SendOptions, 'sessionId'>): Promise<ExecutionResult>;
  /** A conversation of many turns. @throws synchronously LOUSHO_SESSION_ID_INVALID, LOUSHO_CONFIG_INVALID */
  session(options: SessionOptions): AgentSession;
  /** Unfinished runs of the store, oldest save first. @throws LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE, LOUSHO_CONFIG_INVALID (no `list`) */
  pending(): Promise<readonly PendingRun[]>;
  /**
   * Looks for interrupted runs of this agent's name, again and again, and finishes them; expired approvals are denied. A run that makes no
   * progress is started ever more seldom, and parked after `maxAttempts` starts. For every replica. Keeps the process alive until stopped
   * (`once`: until it has ended).
   * @throws synchronously LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE, LOUSHO_CONFIG_INVALID (no `list`; an option), LOUSHO_SHUTDOWN
   */
  recover(options?: RecoverOptions): LoopHandle;
  readonly approvals: Approvals;
  /**
   * A new run that begins with what another one was at a step; the source stays as it is. `resume` continues it, `recover()` only once
   * that was called.
   * @throws LOUSHO_CHECKPOINT_NOT_FOUND, LOUSHO_SESSION_EXISTS, LOUSHO_SESSION_ID_INVALID (of a session: use `session.fork`),
   * LOUSHO_CONFIG_INVALID (no history, wrong patch), LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE
   */
  fork(sessionId: string, options: ForkOptions): Promise<ForkResult>;
  /**
   * Fires each schedule at its times until stopped; replicas over one store fire each time once. Fires that were missed are not made up for.
   * Does not keep the process alive. @throws synchronously LOUSHO_SCHEDULE_INVALID
   */
  startSchedules(schedules: readonly Schedule[], options?: ScheduleOptions): LoopHandle;
  /**
   * One fire: what a cron of the platform calls. `null` when another replica has this fire time.
   * @throws LOUSHO_SCHEDULE_INVALID and what `send` does
   */
  fireSchedule(schedule: Schedule, options?: FireOptions): Promise<ExecutionResult | null>;
  /**
   * The process goes away: starts nothing new, lets running calls finish up to `timeoutMs` (default 10,000), records what settled,
   * releases the leases. Calls in flight reject with LOUSHO_SHUTDOWN. Stops `recover()` and schedules; closes no store.
   */
  shutdown(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
}
