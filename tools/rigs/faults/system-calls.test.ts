/** A system call fails, or the process dies in front of it: each in turn, of everything that a saving process does with a disk. */
import fs from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { requireTools, run } from '../src/fault-tools.ts';
import { SaveProcess, countableCommand, type SaveJob } from '../src/save-process.ts';
import { findStepLosses, readStepLog, saveOneMore } from '../src/step-log.ts';
import { openStore, type StoreFault, type StoreKind } from '../workers/open-store.mjs';
import { temporaryFolder } from './support/temporary-folder.ts';

interface Calls {
  /** What a save writes and syncs with. */
  readonly writing: readonly string[];
  /** What makes and removes names. */
  readonly naming: readonly string[];
}

/** Regular expressions: which of two calls it is depends on the processor. */
const calls: { readonly [Kind in StoreKind]: Calls } = {
  sqlite: { writing: ['pwrite64', 'fsync'], naming: [] },
  file: {
    writing: ['pwrite64', 'fsync', 'fdatasync'],
    naming: ['link(at)?', 'rename(at2?)?', 'unlink(at)?', 'mkdir(at)?'],
  },
};
const errors = ['EIO', 'ENOSPC'] as const;
const STEPS = 3;

beforeAll(() => requireTools('strace'));

describe.each(Object.keys(calls) as StoreKind[])('%s', (kind) => {
  const { writing, naming } = calls[kind];

  it.each([...writing, ...naming])(
    'keeps what is acknowledged when the process dies in front of any %s',
    async (call) => {
      const counts = await sweep({ kind, call, what: 'signal=KILL' });
      expect(counts.losses).toEqual([]);
      expect(counts.calls).toBeGreaterThan(0);
      // Whatever was in its way, it died.
      expect(counts.deaths).toBe(counts.calls);
    },
  );

  it.each(writing.flatMap((call) => errors.map((error) => [call, error] as const)))(
    'is in the state before when any %s fails with %s, and goes on',
    async (call, error) => {
      const counts = await sweep({ kind, call, what: `error=${error}` });
      expect(counts.losses).toEqual([]);
      expect(counts.deaths).toBe(0);
      expect([...counts.codes]).not.toEqual([]);
      for (const code of counts.codes) expect(code).toMatch(/^LOUSHO_STORE_(?:READ|WRITE)_FAILED$/);
    },
  );

  it('would be found out if it told before it stored', async () => {
    const { losses } = await sweep({
      kind,
      call: 'pwrite64',
      what: 'signal=KILL',
      fault: 'early',
      untilLoss: true,
    });
    expect(losses.join('\n')).toContain('was acknowledged');
  });
});

interface Sweep {
  readonly kind: StoreKind;
  readonly call: string;
  /** As strace takes it. */
  readonly what: string;
  readonly fault?: StoreFault;
  /** Begins with the last call, and ends as soon as something is lost. */
  readonly untilLoss?: boolean;
}

interface SweepCounts {
  readonly calls: number;
  readonly deaths: number;
  readonly losses: readonly string[];
  /** Of saves that were rejected. */
  readonly codes: ReadonlySet<string>;
}

/** Lets it happen at the first call, at the second, and so on, each time to a new process with a new store. */
async function sweep({ kind, call, what, fault, untilLoss = false }: Sweep): Promise<SweepCounts> {
  const count = countCalls({ ...givenJob(kind), ...(fault && { fault }) }, call);
  const counts = { calls: count, deaths: 0, losses: [] as string[], codes: new Set<string>() };
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  if (untilLoss) numbers.reverse();
  async function takeNext(): Promise<void> {
    for (let n = numbers.shift(); n !== undefined; n = numbers.shift()) {
      const job: SaveJob = { ...givenJob(kind), ...(fault && { fault }) };
      const signal = await new SaveProcess(job, `/^${call}$:${what}:when=${n}`).ended;
      if (signal === 'SIGKILL') counts.deaths += 1;
      for (const { code } of readStepLog(job.logPath)) if (code !== undefined) counts.codes.add(code);
      const losses = await lossesOf(job);
      for (const loss of losses) counts.losses.push(`${call} ${n} of ${count}: ${loss}`);
      if (untilLoss && losses.length > 0) numbers.splice(0);
    }
  }
  await Promise.all([takeNext(), takeNext()]);
  return counts;
}

function givenJob(kind: StoreKind): SaveJob {
  const folder = temporaryFolder();
  return { kind, folder, logPath: path.join(folder, 'log.jsonl'), ids: ['order-7'], steps: STEPS };
}

async function lossesOf({ kind, folder, logPath }: SaveJob): Promise<readonly string[]> {
  const store = openStore({ kind, folder });
  const losses = [...(await findStepLosses(store, readStepLog(logPath)))];
  if (losses.length === 0) {
    await saveOneMore(store, logPath);
    losses.push(...(await findStepLosses(store, readStepLog(logPath))));
  }
  await store.close();
  return losses;
}

/** How many of them a process makes that nothing happens to. */
function countCalls(job: SaveJob, call: string): number {
  const trace = path.join(job.folder, 'trace');
  run('strace', ['-f', '-qq', '-o', trace, '-e', `trace=/^${call}$`, ...countableCommand(job)]);
  return fs.readFileSync(trace, 'utf8').match(new RegExp(`^\\d+ +${call}\\(`, 'gm'))?.length ?? 0;
}
