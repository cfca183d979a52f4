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

/**
 * Lets it happen at the first call, at the second, and so on, each time to a new process. The files are made in the thread pool and
 * grow on the thread, and strace finds the first call of each of the two: so once in a new folder, and once in one that is used.
 */
async function sweep(options: Sweep): Promise<SweepCounts> {
  const counts = { calls: 0, deaths: 0, losses: [] as string[], codes: new Set<string>() };
  await sweepIn(givenJob, options, counts);
  if (options.kind === 'file') await sweepIn(givenJobInUsedFolder, options, counts);
  return counts;
}

async function sweepIn(
  given: (kind: StoreKind) => Promise<SaveJob> | SaveJob,
  { kind, call, what, fault, untilLoss = false }: Sweep,
  counts: { calls: number; deaths: number; readonly losses: string[]; readonly codes: Set<string> },
): Promise<void> {
  const count = countCalls({ ...(await given(kind)), ...(fault && { fault }) }, call);
  counts.calls += count;
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  if (untilLoss) numbers.reverse();
  async function takeNext(): Promise<void> {
    for (let n = numbers.shift(); n !== undefined; n = numbers.shift()) {
      const job: SaveJob = { ...(await given(kind)), ...(fault && { fault }) };
      const signal = await new SaveProcess(job, `/^${call}$:${what}:when=${n}`).ended;
      if (signal === 'SIGKILL') counts.deaths += 1;
      for (const { code } of readStepLog(job.logPath)) if (code !== undefined) counts.codes.add(code);
      const losses = await lossesOf(job);
      for (const loss of losses) counts.losses.push(`${call} ${n} of ${count}: ${loss}`);
      if (untilLoss && losses.length > 0) numbers.splice(0);
    }
  }
  await Promise.all([takeNext(), takeNext()]);
}

function givenJob(kind: StoreKind): SaveJob {
  const folder = temporaryFolder();
  return { kind, folder, logPath: path.join(folder, 'log.jsonl'), ids: ['order-7'], steps: STEPS };
}

async function givenJobInUsedFolder(kind: StoreKind): Promise<SaveJob> {
  const job = givenJob(kind);
  const store = openStore(job);
  await store.checkpoints.acquireLease('order-6', 'somebody', 30_000);
  await store.close();
  return job;
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

/** How many of them a thread makes at most, in a process that nothing happens to. */
function countCalls(job: SaveJob, call: string): number {
  const trace = path.join(job.folder, 'trace');
  run('strace', ['-f', '-qq', '-o', trace, '-e', `trace=/^${call}$`, ...countableCommand(job)]);
  const counts = new Map<string, number>();
  for (const [, thread = ''] of fs
    .readFileSync(trace, 'utf8')
    .matchAll(new RegExp(`^(\\d+) +${call}\\(`, 'gm')))
    counts.set(thread, (counts.get(thread) ?? 0) + 1);
  return Math.max(0, ...counts.values());
}
