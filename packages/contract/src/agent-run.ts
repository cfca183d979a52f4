/** The handle of a run under way. */
import type { AgentEvent } from './events.ts';
import type { UserMessage } from './messages.ts';
import type { ExecutionResult } from './result.ts';

export interface QueuedInput {
  readonly id: string;
  /** `immediate`: a model call that had said nothing was dropped for it. `false`: the run was over. */
  readonly applied: 'immediate' | 'queued' | false;
  /** Whether it reached the transcript. Never rejects. */
  readonly joined: Promise<boolean>;
}
/** A run under way. It starts by itself; events are buffered; not reading `result` is no unhandled rejection. */
export interface AgentRun extends AsyncIterable<AgentEvent> {
  /** All events from the first. Leaving the loop early aborts the run. A second loop throws LOUSHO_RUN_ALREADY_ITERATED. */
  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, void, undefined>;
  readonly result: Promise<ExecutionResult>;
  /** The text deltas alone; may be read beside the events. Ends when the run does. */
  readonly textStream: AsyncIterable<string>;
  /** Redirects: running calls finish, calls not begun get `not-run`, then this input. */
  steer(input: string | UserMessage): QueuedInput;
  /** Adds input before the next model call. */
  enqueue(input: string | UserMessage): QueuedInput;
  /** As the `signal` option: `result` resolves with `aborted`. */
  abort(reason?: unknown): void;
}
