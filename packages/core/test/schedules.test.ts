/** Schedules: each fire time is run once, whoever fires it, and a fire that goes wrong is reported and holds back no other. */
import type { LLMRequest } from '@lousho/contract';
import { manualClock, mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { createAgent, type Agent, type Schedule, type ScheduleOptions } from '../src/index.ts';
import { fireTimesOf } from '../src/schedule-times.ts';
import { lines, refusal, thrown } from './support/read.ts';
import { watchedRecovery } from './support/recovery.ts';
import { deferred, failingOnceTool, spyTool } from './support/tools.ts';
import { passUntil, until } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
const report: Schedule = { id: 'report', input: 'Write the report.', everyMs: 5 * MINUTE };

function watched(agent: Agent, schedules: readonly Schedule[], options: ScheduleOptions = {}) {
  const results: string[] = [];
  const errors: unknown[] = [];
  const handle = agent.startSchedules(schedules, {
    onResult: ({ id }, { text, sessionId }) => void results.push(`${id} ${sessionId ?? '-'}: ${text}`),
    onError: (error, { id }) => void errors.push({ id, error }),
    ...options,
  });
  return { ...handle, results, errors };
}

onEveryStore('schedules', (world) => {
  const untilNextFire = () => 5 * MINUTE - (world.clock.wallMs() % (5 * MINUTE));

  it('gives each fire a run of its own, named by its time, without what was said before', async () => {
    const model = mockModel(['One.', 'Two.']);
    const schedules = watched(world.agent({ provider: model }), [report]);
    await world.clock.advance(untilNextFire());
    await until(() => schedules.results.length === 1);
    await world.clock.advance(5 * MINUTE);
    await until(() => schedules.results.length === 2);
    await schedules.stop();
    await schedules.done;
    const name = (atMs: number) => `report-${new Date(atMs).toISOString().replace(/[-:]|\.000/g, '')}`;
    const lastMs = world.clock.wallMs();
    expect(schedules.results).toEqual([
      `report ${name(lastMs - 5 * MINUTE)}: One.`,
      `report ${name(lastMs)}: Two.`,
    ]);
    expect(lines(model.calls[1]?.messages ?? [])).toEqual(['user Write the report.']);
    expect(schedules.errors).toEqual([]);
  });

  it('fires a time once, however many replicas fire it', async () => {
    const model = mockModel(['Once.']);
    const firedAt = new Date(world.clock.wallMs());
    const fires = await Promise.all(
      [world.agent({ provider: model }), world.otherProcess().agent({ provider: model })].map((agent) =>
        agent.fireSchedule(report, { firedAt }),
      ),
    );
    expect(fires.filter((result) => result !== null)).toMatchObject([{ text: 'Once.' }]);
    expect(await world.agent({ provider: model }).fireSchedule(report, { firedAt })).toBeNull();
    expect(model.calls).toHaveLength(1);
    expect(await world.agent({ provider: model }).pending()).toEqual([]);
  });

  it('keeps fires of other times and of other schedules apart', async () => {
    const agent = world.agent({ provider: mockModel(['Done.'], { onExhausted: 'repeat-last' }) });
    const firedAt = new Date(world.clock.wallMs());
    const later = new Date(firedAt.getTime() + 1_000);
    for (const [schedule, at] of [
      [report, firedAt],
      [report, later],
      [{ ...report, id: 'other' }, firedAt],
    ] as const)
      expect(await agent.fireSchedule(schedule, { firedAt: at })).toMatchObject({ text: 'Done.' });
  });

  it('continues one conversation over all fires with a sessionId', async () => {
    const model = mockModel(['One.', 'Two.']);
    const agent = world.agent({ provider: model });
    const schedule = { ...report, sessionId: 'reports' };
    await agent.fireSchedule(schedule, { firedAt: new Date(1_000) });
    await agent.fireSchedule(schedule, { firedAt: new Date(2_000) });
    expect(lines(model.calls[1]?.messages ?? [])).toEqual([
      'user Write the report.',
      'assistant One.',
      'user Write the report.',
    ]);
  });

  it('leaves a run that recovery finds when its process dies before the first model response, and does not fire the time again', async () => {
    const asked = deferred();
    const hanging = mockModel([
      () => {
        asked.resolve();
        return new Promise<never>(() => undefined);
      },
    ]);
    const dead = world.otherProcess(manualClock(world.clock.wallMs()));
    const firedAt = new Date(world.clock.wallMs());
    void dead.agent({ provider: hanging }).fireSchedule(report, { firedAt });
    await asked.promise;
    const agent = world.agent({ provider: mockModel(['Recovered.']) });
    expect(await agent.pending()).toMatchObject([{ kind: 'run', step: 0 }]);
    expect(await agent.fireSchedule(report, { firedAt })).toBeNull();
    const recovery = watchedRecovery(agent);
    await passUntil(world.clock, MINUTE, () => recovery.recovered.length === 1);
    await recovery.stop();
    expect(recovery.recovered).toEqual([expect.stringMatching(/^report-.*: Recovered\.$/)]);
    expect(await agent.fireSchedule(report, { firedAt })).toBeNull();
  });

  it('reports the failing schedule by name, and the others fire on', async () => {
    const bad = failingOnceTool('bad');
    // Both fire at one moment: what the model says follows from what it is asked.
    const model = mockModel(
      [
        ({ messages }: LLMRequest) =>
          messages.length === 1 && messages[0]?.content === 'bad'
            ? { toolCalls: [{ name: 'bad' }] }
            : 'Good.',
      ],
      { onExhausted: 'repeat-last' },
    );
    const schedules = watched(world.agent({ provider: model, tools: [bad.tool] }), [
      { ...report, id: 'bad', input: 'bad' },
      { ...report, id: 'good', input: 'good' },
    ]);
    await world.clock.advance(untilNextFire());
    await until(() => schedules.results.length === 1 && schedules.errors.length === 1);
    expect(schedules.errors).toMatchObject([{ id: 'bad', error: { code: 'LOUSHO_TOOL_PROPAGATED' } }]);
    await world.clock.advance(5 * MINUTE);
    await until(() => schedules.results.filter((line) => line.startsWith('good')).length === 2);
    await schedules.stop();
  });

  it('skips and reports a fire while the one before still runs, and the next one fires', async () => {
    const ended = deferred();
    const begun: number[] = [];
    const slow = spyTool('slow', async (_args, _ctx, run) => {
      begun.push(run);
      if (run === 1) await ended.promise;
    });
    const model = mockModel([
      { toolCalls: [{ name: 'slow' }] },
      'Done.',
      { toolCalls: [{ name: 'slow' }] },
      'Done.',
    ]);
    const schedules = watched(world.agent({ provider: model, tools: [slow.tool] }), [report]);
    await world.clock.advance(untilNextFire());
    await until(() => begun.length === 1);
    await world.clock.advance(5 * MINUTE);
    await until(() => schedules.errors.length === 1);
    expect(schedules.errors).toMatchObject([{ id: 'report', error: { code: 'LOUSHO_SESSION_BUSY' } }]);
    ended.resolve();
    await until(() => schedules.results.length === 1);
    await world.clock.advance(5 * MINUTE);
    await until(() => schedules.results.length === 2);
    await schedules.stop();
  });

  it('reports a fire that waits for a person, with the approval', async () => {
    const gated = spyTool('gated', undefined, { needsApproval: true });
    const model = mockModel([{ toolCalls: [{ name: 'gated' }] }]);
    const agent = world.agent({ provider: model, tools: [gated.tool] });
    const schedules = watched(agent, [report]);
    await world.clock.advance(untilNextFire());
    await until(() => schedules.errors.length === 1);
    const [waiting] = await agent.approvals.list();
    expect(schedules.errors).toMatchObject([
      {
        error: {
          code: 'LOUSHO_SCHEDULE_RUN_INCOMPLETE',
          details: { approvalId: waiting?.id, finishReason: 'awaiting-approval' },
        },
      },
    ]);
    await schedules.stop();
  });

  it('stops only when the fire under way has ended, and fires no more', async () => {
    const ended = deferred();
    const begun = deferred();
    const slow = spyTool('slow', async () => {
      begun.resolve();
      await ended.promise;
    });
    const model = mockModel([{ toolCalls: [{ name: 'slow' }] }, 'Done.']);
    const schedules = watched(world.agent({ provider: model, tools: [slow.tool] }), [report]);
    await world.clock.advance(untilNextFire());
    await begun.promise;
    let isDone = false;
    void schedules.done.then(() => (isDone = true));
    const stopping = schedules.stop();
    await new Promise((resolve) => setImmediate(resolve));
    expect(isDone).toBe(false);
    ended.resolve();
    await stopping;
    await schedules.done;
    const callsSoFar = model.calls.length;
    await world.clock.advance(60 * MINUTE);
    expect(model.calls).toHaveLength(callsSoFar);
  });

  it('that a machine slept through for days is not made up for when it wakes up, whatever is left of it', async () => {
    const daily: Schedule = { id: 'payout', input: 'Pay everybody.', everyMs: DAY };
    const model = mockModel(['Paid.'], { onExhausted: 'repeat-last' });
    const asleep = manualClock(world.clock.wallMs());
    const sleeper = watched(world.otherProcess(asleep).agent({ provider: model }), [daily]);
    const awake = watched(world.agent({ provider: model }), [daily]);
    await world.clock.advance(DAY - (world.clock.wallMs() % DAY));
    await until(() => awake.results.length === 1);
    await world.clock.advance(DAY);
    await until(() => awake.results.length === 2);
    await world.clock.advance(DAY / 2);
    await world.store.prune({ olderThanMs: DAY });
    asleep.jumpWall(world.clock.wallMs() - asleep.wallMs());
    await asleep.advance(1.5 * DAY);
    await until(() => sleeper.results.length > 0);
    expect(sleeper.results).toEqual(['payout payout-20260105T000000Z: Paid.']);
    expect(model.calls).toHaveLength(3);
    await Promise.all([awake.stop(), sleeper.stop()]);
  });

  it('takes the mark of the day before with it', async () => {
    const agent = world.agent({ provider: mockModel(['Done.'], { onExhausted: 'repeat-last' }) });
    const firedAt = new Date(10 * 86_400_000);
    await agent.fireSchedule(report, { firedAt });
    expect(await world.stored(`report.${firedAt.getTime()}.fire`)).not.toBeNull();
    await agent.fireSchedule(report, { firedAt: new Date(firedAt.getTime() + 86_400_000) });
    expect(await world.stored(`report.${firedAt.getTime()}.fire`)).toBeNull();
  });
});

describe('a schedule', () => {
  const agent = createAgent({ provider: mockModel(['Done.']) });

  it('of an agent without a store runs and leaves nothing', async () => {
    expect(await agent.fireSchedule(report)).toMatchObject({ text: 'Done.' });
  });

  it.each([
    [{ id: 'a b', input: 'x', everyMs: 1 }, 'its id is not'],
    [{ id: 'a', input: 'x' }, 'everyMs or cron'],
    [{ id: 'a', input: 'x', everyMs: 1, cron: '* * * * *' }, 'only one'],
    [{ id: 'a', input: 'x', everyMs: 0 }, 'everyMs is 0'],
    [{ id: 'a', input: 'x', cron: '* * * *' }, 'five fields'],
    [{ id: 'a', input: 'x', cron: '* * * * * *' }, 'five fields'],
    [{ id: 'a', input: 'x', cron: '61 * * * *' }, '61'],
    [{ id: 'a', input: 'x', cron: '0 0 31 2 *' }, 'never fires'],
    [{ id: 'a', input: 'x', cron: '@daily', timeZone: 'Mars/Base' }, 'Mars/Base'],
    [{ id: 'a', input: 'x', everyMs: 1, timeZone: 'UTC' }, 'needs a cron'],
    [{ id: 'a', input: 'x', everyMs: 1, sessionId: 'a.turn-1' }, 'sessionId'],
    [{ id: 'a', input: 'x', cron: '@daily', timezone: 'Europe/Berlin' } as Schedule, 'timezone'],
  ])('%j is refused when it is given, with the reason', async (schedule, reason) => {
    const error = thrown(() => agent.startSchedules([schedule]));
    expect(error).toMatchObject({ code: 'LOUSHO_SCHEDULE_INVALID' });
    expect(String(error)).toContain(reason);
    await refusal(agent.fireSchedule(schedule), 'LOUSHO_SCHEDULE_INVALID');
  });

  it('is refused under an id that another one has', () => {
    expect(thrown(() => agent.startSchedules([report, report]))).toMatchObject({
      code: 'LOUSHO_SCHEDULE_INVALID',
      details: { scheduleId: 'report' },
    });
  });

  it.each([
    // Berlin goes from 02:00 to 03:00 on 2026-03-29: half past two does not exist.
    ['30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', '2026-03-29T01:00:00Z'],
    // And from 03:00 back to 02:00 on 2026-10-25: half past two comes twice and counts once.
    ['30 2 * * *', 'Europe/Berlin', '2026-10-25T00:30:00Z', '2026-10-26T01:30:00Z'],
    ['0 9 * * 1', undefined, '2026-11-30T09:00:00Z', '2026-12-07T09:00:00Z'],
    ['@daily', undefined, '2026-11-30T09:00:00Z', '2026-12-01T00:00:00Z'],
  ])('%s in %s fires behind %s at %s', (cron, timeZone, after, next) => {
    const times = fireTimesOf({ id: 'a', input: 'x', cron, timeZone });
    expect(new Date(times(Date.parse(after)) ?? 0).toISOString()).toBe(new Date(next).toISOString());
  });
});
