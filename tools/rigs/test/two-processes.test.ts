/** Two processes at one run: the second is refused before anything happens, and works as soon as the first is done, or dead. */
import { expect, it } from 'vitest';
import { describeViolations, findViolations } from '../src/checker.ts';
import { Rig } from '../src/rig.ts';
import type { Ending, ScriptedCall, WorkerProcess } from '../src/worker-process.ts';

const SESSION = 'order-7';
/** The default: nothing here may wait for a lease to run out. */
const LEASE_TTL_MS = 30_000;
const held: ScriptedCall = { name: 'held', args: { gate: 'tool' } };
const work: ScriptedCall = { name: 'work', args: {} };
const heldRefund: ScriptedCall = { name: 'refund', args: { gate: 'refund' } };

it('refuses send and resume of a second process before any effect, until the first has ended', async () => {
  const rig = new Rig('two-processes');
  // One call at a time: while the first is held, the holder saves nothing.
  const agent = { script: [[held, work], [], [work], []], toolConcurrency: 1 };
  const [first, second] = [await rig.startReady({ agent, echo: true }), await rig.startReady({ agent })];

  const executing = sendAndReachTool(first);
  await executing.started;
  const before = rig.rows();
  expect(codeOf(await second.perform(SESSION, { type: 'send', inputId: 'i2' }))).toBe('LOUSHO_SESSION_BUSY');
  expect(codeOf(await second.perform(SESSION, { type: 'resume' }))).toBe('LOUSHO_SESSION_BUSY');
  expect(rig.rows()).toBe(before);
  expect(effectsOf(rig, second)).toEqual([]);

  first.open('tool');
  expect(await executing.ended).toMatchObject({ finishReason: 'stop' });
  expect(await second.perform(SESSION, { type: 'resume' })).toMatchObject({ finishReason: 'nothing' });
  expect(await second.perform(SESSION, { type: 'send', inputId: 'i3' })).toMatchObject({
    finishReason: 'stop',
  });
  await expectEverythingHeld(rig);
});

it('lets one of two processes decide: while it does the other is busy, and afterwards too late', async () => {
  const rig = new Rig('two-deciders');
  const agent = { script: [[heldRefund, heldRefund], []] };
  const [first, second] = [
    await rig.startReady({ agent, holdDecisions: true }),
    await rig.startReady({ agent, echo: true }),
  ];
  const paused = await second.perform(SESSION, { type: 'send', inputId: 'i1' });
  const [one, other] = paused.type === 'resolved' ? (paused.approvalIds as [string, string]) : ['', ''];

  // The first holds the lease and has not stored its decision yet.
  const deciding = first.perform(SESSION, { type: 'decide', approved: true, approvalId: one });
  await first.holding('decision');
  const before = rig.rows();
  const refused = await Promise.all([
    second.perform(SESSION, { type: 'decide', approved: false, approvalId: one }),
    second.perform(SESSION, { type: 'decide', approved: true, approvalId: other }),
  ]);
  expect(refused.map(codeOf)).toEqual(['LOUSHO_SESSION_BUSY', 'LOUSHO_SESSION_BUSY']);
  expect(rig.rows()).toBe(before);
  first.open('decision');
  expect(await deciding).toMatchObject({ finishReason: 'awaiting-approval', approvalIds: [other] });

  // The last decision: its process executes the calls, and nobody decides them again.
  const started = second.line(({ kind }) => kind === 'tool.started');
  const executing = second.perform(SESSION, { type: 'decide', approved: true, approvalId: other });
  await started;
  for (const approvalId of [one, other]) {
    const late = await first.perform(SESSION, { type: 'decide', approved: false, approvalId });
    expect(codeOf(late)).toBe('LOUSHO_APPROVAL_DECIDED');
  }
  second.open('refund');
  expect(await executing).toMatchObject({ finishReason: 'stop' });
  await expectEverythingHeld(rig);
});

it.runIf(process.platform === 'linux')(
  'takes over at once from a process that was killed on the same host',
  async () => {
    const rig = new Rig('killed-holder');
    const agent = { script: [[held, work], []] };
    const [first, second] = [await rig.startReady({ agent, echo: true }), await rig.startReady({ agent })];
    const executing = sendAndReachTool(first);
    await executing.started;
    await first.kill();
    expect(await executing.ended).toEqual({ type: 'died' });

    second.open('tool');
    expect(await second.perform(SESSION, { type: 'resume' })).toMatchObject({ finishReason: 'stop' });
    const log = rig.log();
    const killed = log.find(({ kind }) => kind === 'worker.killed');
    const taken = log.findLast(({ kind }) => kind === 'lease.taken');
    expect((taken?.at ?? Infinity) - (killed?.at ?? 0)).toBeLessThan(LEASE_TTL_MS);
    await expectEverythingHeld(rig);
  },
);

/** The run of a first process, held in its first tool. Needs `echo`. */
function sendAndReachTool(worker: WorkerProcess): { started: Promise<unknown>; ended: Promise<Ending> } {
  const started = worker.line(({ kind }) => kind === 'tool.started');
  return { started, ended: worker.perform(SESSION, { type: 'send', inputId: 'i1' }) };
}

function codeOf(ending: Ending): string {
  return ending.type === 'rejected' ? (ending.code ?? ending.message) : ending.type;
}

function effectsOf(rig: Rig, { job }: WorkerProcess): readonly string[] {
  return rig
    .log()
    .filter(({ worker }) => worker === job.worker)
    .map(({ kind }) => kind)
    .filter((kind) => !kind.startsWith('op.'));
}

async function expectEverythingHeld(rig: Rig): Promise<void> {
  const finals = new Map([[SESSION, await rig.load(SESSION)]]);
  const evidence = { log: rig.log(), looks: [], finals, leaseTtlMs: LEASE_TTL_MS };
  expect(describeViolations(findViolations(evidence))).toBe('');
}
