/** A process that is stopped for longer than its lease: it goes on when nobody took its run, and is refused when somebody did. */
import { expect, it } from 'vitest';
import { describeViolations, findViolations } from '../src/checker.ts';
import { Rig } from '../src/rig.ts';
import type { Ending, ScriptedCall, WorkerProcess } from '../src/worker-process.ts';

const SESSION = 'order-7';
const LEASE = { ttlMs: 1_000, heartbeatMs: 300 };
/** A lease is free for others after two periods. */
const LONGER_THAN_LEASE_MS = 2.5 * LEASE.ttlMs;
const held: ScriptedCall = { name: 'held', args: { gate: 'tool' } };
const work: ScriptedCall = { name: 'work', args: {} };
/** One call at a time: behind the one that the process is stopped in there are others that must not begin. */
const agent = { script: [[held, work, work], []], lease: LEASE, toolConcurrency: 1 };

it('refuses a holder that was stopped and taken over: it writes nothing and begins nothing', async () => {
  const rig = new Rig('stalled-holder');
  const [holder, contender] = [await rig.startReady({ agent, echo: true }), await rig.startReady({ agent })];
  const { ended } = await stopInTool(holder);

  contender.open('tool');
  expect(await resumeWhenFree(contender)).toMatchObject({ finishReason: 'stop' });
  const before = rig.rows();

  holder.open('tool');
  holder.continue();
  expect(await ended).toMatchObject({ type: 'rejected', code: 'LOUSHO_SESSION_BUSY' });
  expect(rig.rows()).toBe(before);
  expect(kindsSinceContinued(rig, holder).filter((kind) => kind !== 'tool.done')).toEqual(['op.ended']);
  // It has lost this run, not its mind.
  expect(await holder.perform(SESSION, { type: 'send', inputId: 'i2' })).toMatchObject({
    finishReason: 'stop',
  });
  await expectEverythingHeld(rig);
});

it('lets a holder go on that was stopped for as long, and that nobody took over', async () => {
  const rig = new Rig('stalled-alone');
  const holder = await rig.startReady({ agent, echo: true });
  const { ended } = await stopInTool(holder);
  await sleep(LONGER_THAN_LEASE_MS);
  holder.open('tool');
  holder.continue();
  expect(await ended).toMatchObject({ finishReason: 'stop' });
  expect(kindsSinceContinued(rig, holder)).toContain('lease.renewed');
  await expectEverythingHeld(rig);
});

it('gives a holder one more period when the contender was stopped just as long', async () => {
  const rig = new Rig('stalled-both');
  const [holder, contender] = [await rig.startReady({ agent, echo: true }), await rig.startReady({ agent })];
  const reached = holder.line(({ kind }) => kind === 'tool.started');
  const executing = holder.perform(SESSION, { type: 'send', inputId: 'i1' });
  await reached;
  expect(codeOf(await contender.perform(SESSION, { type: 'resume' }))).toBe('LOUSHO_SESSION_BUSY');
  // The machine sleeps, and the contender wakes first.
  holder.stop();
  contender.stop();
  await sleep(LONGER_THAN_LEASE_MS);
  contender.continue();
  expect(codeOf(await contender.perform(SESSION, { type: 'resume' }))).toBe('LOUSHO_SESSION_BUSY');
  holder.open('tool');
  holder.continue();
  expect(await executing).toMatchObject({ finishReason: 'stop' });
  await expectEverythingHeld(rig);
});

/** Resolves when it is stopped; `ended` is what becomes of its run. Needs `echo`. */
async function stopInTool(holder: WorkerProcess): Promise<{ readonly ended: Promise<Ending> }> {
  const reached = holder.line(({ kind }) => kind === 'tool.started');
  const ended = holder.perform(SESSION, { type: 'send', inputId: 'i1' });
  await reached;
  holder.stop();
  return { ended };
}

/** Busy, until the lease has run out. */
async function resumeWhenFree(contender: WorkerProcess): Promise<Ending> {
  let busyCount = 0;
  for (;;) {
    const ending = await contender.perform(SESSION, { type: 'resume' });
    if (codeOf(ending) !== 'LOUSHO_SESSION_BUSY') {
      expect(busyCount).toBeGreaterThan(0);
      return ending;
    }
    busyCount += 1;
    await sleep(50);
  }
}

function kindsSinceContinued(rig: Rig, { job }: WorkerProcess): readonly string[] {
  const log = rig.log();
  const continued = log.findIndex(({ kind, worker }) => kind === 'worker.continued' && worker === job.worker);
  return log
    .slice(continued + 1)
    .filter(({ worker }) => worker === job.worker)
    .map(({ kind }) => kind);
}

function codeOf(ending: Ending): string {
  return ending.type === 'rejected' ? (ending.code ?? ending.message) : ending.type;
}

async function expectEverythingHeld(rig: Rig): Promise<void> {
  const finals = new Map([[SESSION, await rig.load(SESSION)]]);
  const evidence = { log: rig.log(), looks: [], finals, leaseTtlMs: LEASE.ttlMs };
  expect(describeViolations(findViolations(evidence))).toBe('');
}

function sleep(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}
