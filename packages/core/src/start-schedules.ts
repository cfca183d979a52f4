/** `agent.startSchedules()`: one timer a schedule. A fire that is late or failed holds back no other. */
import {
  ConfigurationError,
  SDKError,
  type Clock,
  type ExecutionResult,
  type FinishedResult,
  type OptionNames,
} from '@lousho/contract';
import { refuseOption } from '@lousho/executor/wiring';
import type { AgentParts } from './agent-config.ts';
import type { LoopHandle } from './agent.ts';
import { LATEST_FIRE_MS, fireSchedule, runIdOf } from './fire-schedule.ts';
import { LiveRuns } from './live-runs.ts';
import { requireOptions } from './require-options.ts';
import type { Schedule, ScheduleOptions } from './schedule.ts';
import { fireTimesOf, type FireTimes } from './schedule-times.ts';

const STOP_TIMEOUT_MS = 10_000;

/** @throws synchronously LOUSHO_SCHEDULE_INVALID, LOUSHO_CONFIG_INVALID, LOUSHO_SHUTDOWN */
export function startSchedules(
  parts: AgentParts,
  agentRuns: LiveRuns,
  schedules: readonly Schedule[],
  options: ScheduleOptions,
): LoopHandle {
  agentRuns.requireOpen();
  requireScheduleOptions(options);
  const timers = timersOf(schedules);
  const runs = new LiveRuns(parts.engine.ports.clock, agentRuns);
  const loop = new ScheduleLoop(parts, runs, options);
  return { done: loop.run(timers), stop: ({ timeoutMs = STOP_TIMEOUT_MS } = {}) => runs.shutDown(timeoutMs) };
}

interface ScheduledTimes {
  readonly schedule: Schedule;
  readonly times: FireTimes;
}

function timersOf(schedules: readonly Schedule[]): readonly ScheduledTimes[] {
  const given: unknown = schedules;
  if (!Array.isArray(given)) refuseOption('schedules', given, 'a list of schedules');
  const ids = new Set<string>();
  return schedules.map((schedule) => {
    const times = fireTimesOf(schedule);
    const { id } = schedule;
    if (ids.has(id))
      throw new ConfigurationError('LOUSHO_SCHEDULE_INVALID', {
        scheduleId: id,
        reason: 'its id stands there twice, and the two would take the fires of each other',
      });
    ids.add(id);
    return { schedule, times };
  });
}

class ScheduleLoop {
  /** The run of the fire under way, by schedule id. */
  readonly #underWay = new Map<string, string>();
  readonly #callbacks = new Set<Promise<void>>();

  constructor(
    readonly parts: AgentParts,
    readonly runs: LiveRuns,
    readonly options: ScheduleOptions,
  ) {}

  /** Resolves when it was stopped and everything has settled. */
  async run(timers: readonly ScheduledTimes[]): Promise<void> {
    const { closing } = this.runs;
    const { signal } = this.options;
    const stop = (): void => void this.runs.shutDown(STOP_TIMEOUT_MS);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true, signal: closing });
    for (const timer of timers) this.#wait(timer);
    if (!closing.aborted)
      await new Promise<void>((resolve) =>
        closing.addEventListener('abort', () => resolve(), { once: true }),
      );
    await this.runs.idle();
    while (this.#callbacks.size > 0) await Promise.all(this.#callbacks);
  }

  get #clock(): Clock {
    return this.parts.engine.ports.clock;
  }

  /** For the next fire time behind now: one that passed while the machine slept is not made up for. */
  #wait(timer: ScheduledTimes): void {
    const { closing } = this.runs;
    if (closing.aborted) return;
    const nowMs = this.#clock.wallMs();
    const atMs = timer.times(nowMs);
    if (atMs === undefined) return;
    const given = new AbortController();
    const cancel = this.#clock.setTimer(
      () => {
        given.abort();
        // A timer may be early by the clock that people read, and late by as long as the machine slept.
        const lateMs = this.#clock.wallMs() - atMs;
        if (lateMs >= 0 && lateMs <= LATEST_FIRE_MS) this.#fire(timer, atMs);
        this.#wait(timer);
      },
      atMs - nowMs,
      { keepAlive: false },
    );
    closing.addEventListener('abort', cancel, { once: true, signal: given.signal });
  }

  #fire({ schedule }: ScheduledTimes, atMs: number): void {
    const { id } = schedule;
    const before = this.#underWay.get(id);
    if (before !== undefined)
      return this.#report(new SDKError('LOUSHO_SESSION_BUSY', { sessionId: before }), schedule);
    this.#underWay.set(id, runIdOf(schedule, atMs));
    void this.runs.during(this.#fireAndTell(schedule, atMs)).finally(() => this.#underWay.delete(id));
  }

  /** Never rejects. */
  async #fireAndTell(schedule: Schedule, atMs: number): Promise<void> {
    try {
      const result = await fireSchedule(this.parts, this.runs, schedule, { firedAt: new Date(atMs) });
      if (result === null) return;
      if (isComplete(result)) this.#call(() => this.options.onResult?.(schedule, result));
      else this.#report(incomplete(schedule, result, atMs), schedule);
    } catch (error) {
      const isSuspended = error instanceof SDKError && error.code === 'LOUSHO_SHUTDOWN';
      if (!(isSuspended && this.runs.closing.aborted)) this.#report(error, schedule);
    }
  }

  #report(error: unknown, schedule: Schedule): void {
    this.#call(() => this.options.onError?.(error, schedule));
  }

  /** What a callback throws changes nothing, and is not lost. */
  #call(callback: () => void | Promise<void>): void {
    const called = (async () => callback())()
      .catch((error: unknown) => console.error('lousho: a callback of startSchedules() threw.', error))
      .finally(() => this.#callbacks.delete(called));
    this.#callbacks.add(called);
  }
}

function isComplete(result: ExecutionResult): result is FinishedResult {
  return result.finishReason === 'stop';
}

function incomplete(schedule: Schedule, result: ExecutionResult, atMs: number): SDKError {
  const { finishReason, approvalId, sessionId = runIdOf(schedule, atMs) } = result;
  return new SDKError('LOUSHO_SCHEDULE_RUN_INCOMPLETE', {
    scheduleId: schedule.id,
    sessionId,
    finishReason,
    ...(approvalId === undefined ? undefined : { approvalId }),
  });
}

const everyOption: OptionNames<ScheduleOptions> = { signal: true, onResult: true, onError: true };

function requireScheduleOptions(options: ScheduleOptions): void {
  requireOptions(options, everyOption);
  for (const option of ['onResult', 'onError'] as const)
    if (options[option] !== undefined && typeof options[option] !== 'function')
      refuseOption(option, options[option], 'a function');
}
