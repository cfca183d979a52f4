/** A task that a sub-agent works on while its lead goes on. */

/**
 * `queued`: others have to come to rest first. `running`: it works, or goes on when its lead does. `awaiting-approval`: a call inside it
 * needs a person, who is asked when the lead awaits the task. The others are ends.
 */
export type BackgroundTaskStatus =
  'queued' | 'running' | 'awaiting-approval' | 'finished' | 'failed' | 'cancelled';

export interface BackgroundTask {
  /** `task_1`, `task_2`, ... in the order of the calls, those that were not in the background included. */
  readonly taskId: string;
  /** The name of the sub-agent. */
  readonly agent: string;
  readonly status: BackgroundTaskStatus;
  /** How long it was worked on. */
  readonly elapsedMs?: number;
  /** Why it failed. */
  readonly error?: string;
  /** With `awaiting-approval`: the first call that waits. Nobody can decide it before the lead awaits the task. */
  readonly approvalId?: string;
  readonly toolName?: string;
}

/** As the checkpoint of its lead keeps it: where it stood when it last came to rest. What it did itself is in its own checkpoint. */
export interface StoredBackgroundTask extends BackgroundTask {
  /** The place of the `task` call that gave it, from which the id of its checkpoint is made. */
  readonly step: number;
  readonly index: number;
  /** Its answer was given, or it was ended without one: its checkpoint is read no more. */
  readonly isOver?: true;
}
