/** Work that comes at its time, as applications write it down. */
import type { AgentInput, FinishedResult } from '@lousho/contract';

export interface Schedule {
  /** Part of the claim that makes replicas fire once: `[A-Za-z0-9_-]{1,64}`. */
  readonly id: string;
  readonly input: AgentInput;
  /** This or `cron`. Counted from 1970, so that all replicas fire at the same times. */
  readonly everyMs?: number | undefined;
  /** Five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. */
  readonly cron?: string | undefined;
  /** IANA name, default `'UTC'`. */
  readonly timeZone?: string | undefined;
  /** One conversation over all fires. Default: a new run for each, `<id>-<fire time>`. */
  readonly sessionId?: string | undefined;
}
export interface ScheduleOptions {
  readonly signal?: AbortSignal | undefined;
  /** A fire that ended with `stop`. */
  readonly onResult?: ((schedule: Schedule, result: FinishedResult) => void | Promise<void>) | undefined;
  /** A fire that failed, ended in another way (`LOUSHO_SCHEDULE_RUN_INCOMPLETE`), or was skipped because the one before still runs (`LOUSHO_SESSION_BUSY`). */
  readonly onError?: ((error: unknown, schedule: Schedule) => void | Promise<void>) | undefined;
}
export interface FireOptions {
  /** Default: now, cut to the second. */
  readonly firedAt?: Date | undefined;
  readonly signal?: AbortSignal | undefined;
}
