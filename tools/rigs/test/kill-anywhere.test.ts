/** One run with parallel calls and approvals, killed with SIGKILL 100 times at moments that a seed chooses, and resumed each time. */
import { expect, it } from 'vitest';
import { describeViolations, findViolations, type Look } from '../src/checker.ts';
import { chooseMoment, killAt } from '../src/kill-moments.ts';
import { seededRandom, type Random } from '../src/random.ts';
import { Rig } from '../src/rig.ts';
import type { StoreKind } from '../workers/open-store.mjs';
import type { Ending, ScriptedCall, WorkerProcess } from '../src/worker-process.ts';

const SESSION = 'order-7';
const KILLS = 100;
/** Model responses of one run. It takes more than one run when the kills come late. */
const STEPS = 120;

it.each<StoreKind>(['sqlite', 'file'])(
  'holds every promise over 100 kills at random moments (%s)',
  async (storeKind) => {
    const rig = new Rig('kill-anywhere', { storeKind });
    const random = seededRandom(`kill-anywhere (${storeKind})`);
    const agent = { script: chooseScript(random), modelMs: 1 };
    const looks: Look[] = [];
    const inputs = new Inputs();

    let next = rig.start({ agent, echo: true });
    for (let kills = 0; kills < KILLS; kills += 1) {
      const worker = next;
      // It loads while this one works.
      next = rig.start({ agent, echo: true });
      const killed = killAt(worker, chooseMoment(random));
      await Promise.race([killed, goOnForEver(worker, inputs, random)]);
      looks.push({ session: SESSION, logLength: rig.log().length, checkpoint: await rig.load(SESSION) });
    }
    const last = next;
    last.begin();
    await goOnUntilFinished(last, inputs, random);
    await last.end();

    const log = rig.log();
    const evidence = {
      log,
      looks,
      finals: new Map([[SESSION, await rig.load(SESSION)]]),
      leaseTtlMs: 30_000,
    };
    expect(describeViolations(findViolations(evidence))).toBe('');
    // The rig itself: it killed where it hurts.
    expect(log.filter(({ kind }) => kind === 'worker.killed')).toHaveLength(KILLS);
    const cut = cutCalls(log);
    console.log(`kill-anywhere: ${log.length} lines, ${cut} calls cut by ${KILLS} kills`);
    expect(cut).toBeGreaterThan(KILLS / 10);
  },
);

/** Parallel calls of a few milliseconds; now and then one that must not be repeated, and one that a person decides. */
function chooseScript(random: Random): readonly (readonly ScriptedCall[])[] {
  const steps = Array.from({ length: STEPS - 1 }, () => {
    const names = random.pick([
      ['work', 'work', 'work'],
      ['work', 'work'],
      ['careful', 'work', 'work'],
      ['work', 'refund', 'refund'],
    ] as const);
    return names.map((name): ScriptedCall => ({ name, args: { ms: random.below(5) } }));
  });
  return [...steps, []];
}

/** An input is sent until somebody hears that its run has ended: whoever was killed before sends it again. */
class Inputs {
  #count = 1;

  async send(worker: WorkerProcess): Promise<Ending> {
    const ending = await worker.perform(SESSION, { type: 'send', inputId: `i${this.#count}` });
    if (ending.type === 'resolved' && ending.finishReason === 'stop') this.#count += 1;
    return ending;
  }
}

async function goOnForEver(worker: WorkerProcess, inputs: Inputs, random: Random): Promise<void> {
  const ready = worker.ready();
  worker.begin();
  await ready.catch(() => undefined);
  while (worker.isAlive) await goOn(worker, inputs, random);
}

async function goOnUntilFinished(worker: WorkerProcess, inputs: Inputs, random: Random): Promise<void> {
  for (;;) {
    const ending = await goOn(worker, inputs, random);
    if (ending.type === 'resolved' && ending.finishReason === 'stop') return;
    if (ending.type !== 'resolved') throw new Error(`The last process got ${JSON.stringify(ending)}`);
  }
}

/** What every process does that starts: look into the store, and go on from there. */
async function goOn(worker: WorkerProcess, inputs: Inputs, random: Random): Promise<Ending> {
  const looked = await worker.perform(SESSION, { type: 'look' });
  if (looked.type !== 'resolved') return looked;
  const [pending] = looked.pending ?? [];
  if (pending === undefined) return inputs.send(worker);
  if (pending.status === 'in-progress') return worker.perform(SESSION, { type: 'resume' });
  return worker.perform(SESSION, { type: 'decide', approved: random.next() < 0.8, index: random.below(2) });
}

function cutCalls(log: ReturnType<Rig['log']>): number {
  const began = log.filter(({ kind }) => kind === 'tool.started').length;
  return began - log.filter(({ kind }) => kind === 'tool.done').length;
}
