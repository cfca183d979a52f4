/** When a schedule fires. The same times for every replica: nothing depends on when a process began. */
import { ConfigurationError, assertRunId, isSDKError, type OptionNames } from '@lousho/contract';
import { Cron } from 'croner';
import type { Schedule } from './schedule.ts';

/** The first fire time behind a moment; `undefined` when there is none any more. Epoch milliseconds. */
export type FireTimes = (afterMs: number) => number | undefined;

/** @throws synchronously LOUSHO_SCHEDULE_INVALID */
export function fireTimesOf(schedule: Schedule): FireTimes {
  const { everyMs, cron } = checked(schedule);
  if (everyMs !== undefined) return (afterMs) => (Math.floor(afterMs / everyMs) + 1) * everyMs;
  const times = parseCron(schedule, cron ?? '');
  return (afterMs) => times.nextRun(new Date(afterMs))?.getTime();
}

/** A `timezone` that nobody reads would fire at another hour. */
const everyField: OptionNames<Schedule> = {
  id: true,
  input: true,
  everyMs: true,
  cron: true,
  timeZone: true,
  sessionId: true,
};
const SCHEDULE_ID = /^[A-Za-z0-9_-]{1,64}$/;
/** Five fields; a sixth would be seconds, which no other cron has. */
const FIVE_FIELDS = /^\s*\S+(?:\s+\S+){4}\s*$/;
const NICKNAME = /^@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)$/i;

function checked(schedule: Schedule): Schedule {
  const given: unknown = schedule;
  if (typeof given !== 'object' || given === null) return refuse('?', 'it is no object with an id');
  const { id, everyMs, cron, timeZone, sessionId } = schedule;
  for (const name of Object.keys(schedule))
    if (!(name in everyField))
      refuse(String(id), `it has no field "${name}"; its fields are ${Object.keys(everyField).join(', ')}`);
  if (typeof id !== 'string' || !SCHEDULE_ID.test(id))
    refuse(String(id), 'its id is not 1-64 characters of A-Z a-z 0-9 _ -');
  if ((everyMs === undefined) === (cron === undefined))
    refuse(id, 'it needs everyMs or cron, and only one of them');
  if (everyMs !== undefined && !(typeof everyMs === 'number' && everyMs >= 1 && everyMs < Infinity))
    refuse(id, `everyMs is ${String(everyMs)}; it must be a number of milliseconds, 1 or more`);
  if (timeZone !== undefined && cron === undefined) refuse(id, 'a timeZone needs a cron');
  if (sessionId !== undefined) requireSessionId(id, sessionId);
  return schedule;
}

function requireSessionId(id: string, sessionId: string): void {
  try {
    assertRunId(sessionId);
  } catch (error) {
    if (!isSDKError(error, 'LOUSHO_SESSION_ID_INVALID')) throw error;
    refuse(id, `its sessionId cannot be used: ${error.details.rule}`);
  }
}

/** A job at an hour that a change to summer time skips fires at the first instant behind the gap. */
function parseCron({ id, timeZone = 'UTC' }: Schedule, cron: string): Cron {
  if (typeof cron !== 'string' || !(FIVE_FIELDS.test(cron) || NICKNAME.test(cron)))
    refuse(id, `cron is "${String(cron)}"; it must have five fields, such as "0 9 * * 1"`);
  try {
    const times = new Cron(cron, { timezone: timeZone, paused: true });
    if (times.nextRun() !== null) return times;
  } catch (error) {
    refuse(id, error instanceof Error ? error.message : String(error));
  }
  return refuse(id, `cron "${cron}" never fires`);
}

function refuse(scheduleId: string, reason: string): never {
  throw new ConfigurationError('LOUSHO_SCHEDULE_INVALID', { scheduleId, reason });
}
