/** A conversation as applications hold it. */
import type {
  AgentEvent,
  AgentInput,
  AgentRun,
  AgentStore,
  ExecutionResult,
  Message,
  RunLimits,
} from '@lousho/contract';
import type { AbortOptions, PendingRun, SendOptions } from './agent.ts';
import type { SessionHistoryEntry } from './session-history.ts';

export interface SessionOptions {
  /** 1-128 characters of `A-Za-z0-9_-`. */
  readonly id: string;
  /** A second `send` during a turn of this process waits for it, joins it, or steers it. Default `'wait'`. */
  readonly turnPolicy?: 'wait' | 'queue' | 'steer' | undefined;
  /** Over the whole session, besides the agent's own, which are over one run. */
  readonly limits?: RunLimits | undefined;
  /** Parts given here replace the agent's. Make the session object before you resume or decide one of its turns through the agent. */
  readonly store?: AgentStore | undefined;
}

export interface MessagesOptions {
  readonly includePending?: boolean | undefined;
}

/** A conversation: many turns, one transcript. A turn is a durable run under `<id>.turn-<n>`. */
export interface AgentSession {
  readonly id: string;
  /**
   * Finishes an interrupted turn first, then takes this input as a turn of its own.
   * @throws LOUSHO_SESSION_TURN_FAILED and what `Agent.send` does; LOUSHO_SESSION_BUSY with `executed` when another process wrote the
   * transcript while the turn ran
   */
  send(input: AgentInput, options?: Omit<SendOptions, 'sessionId'>): Promise<ExecutionResult>;
  /** Wrong options throw synchronously. An interrupted turn that comes first is not part of the stream. */
  stream(input: AgentInput, options?: Omit<SendOptions, 'sessionId'>): AgentRun;
  /** `null` when no turn is unfinished. Busy at once, it never waits. */
  resume(options?: AbortOptions): Promise<ExecutionResult | null>;
  streamResume(options?: AbortOptions): AgentRun;
  /**
   * The committed transcript, without the agent's instructions. `includePending`: and behind it what the unfinished turn has recorded so
   * far, the results of its open step too.
   */
  messages(options?: MessagesOptions): Promise<readonly Message[]>;
  /** The unfinished turn. */
  pending(): Promise<PendingRun | null>;
  /** One entry a model response of the committed transcript, newest first. */
  history(): Promise<readonly SessionHistoryEntry[]>;
  /**
   * A new session with the transcript up to this step's last result; `fromStep: 0` keeps nothing. The unfinished turn stays here, and
   * what was spent counts for both. Default id `<id>-fork-<n>`.
   * @throws LOUSHO_CHECKPOINT_NOT_FOUND, LOUSHO_SESSION_EXISTS, LOUSHO_SESSION_ID_INVALID
   */
  fork(options: {
    readonly fromStep: number;
    readonly newSessionId?: string | undefined;
  }): Promise<AgentSession>;
  /** Drops the unfinished turn, also a damaged one, and withdraws its approvals. `false`: there was none. @throws LOUSHO_SESSION_BUSY */
  discardPending(): Promise<boolean>;
  /**
   * Forgets everything but the id and how many turns there were: nothing of before comes back, also from a process that stood still.
   * @throws LOUSHO_SESSION_BUSY while a turn runs, SessionAwaitingApprovalError while one waits for a person
   */
  clear(): Promise<void>;
  /** Every event of the turns that this object executes. The returned function ends it. */
  on(listener: (event: AgentEvent) => void): () => void;
}
