/** Many processes at one file: they all get in, nobody hears of locks, and what is not ours stays as it is. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { SDKError } from '@lousho/contract';
import { SqliteStore } from '@lousho/store-sqlite';
import { describe, expect, it } from 'vitest';
import { describeViolations, findViolations } from '../src/checker.ts';
import { Rig } from '../src/rig.ts';
import type { ScriptedCall, WorkerProcess } from '../src/worker-process.ts';

it('lets ten processes open one new file at the same moment, and all of them save', async () => {
  const rig = new Rig('open-race');
  const workers = Array.from({ length: 10 }, () => rig.start({ agent: { script: [[]] } }));
  await Promise.all(workers.map((worker) => worker.loaded()));
  await Promise.all(workers.map((worker) => (worker.begin(), worker.ready())));
  const sessions = workers.map(({ job }) => `session-of-${job.worker}`);
  await expectAllFinish(workers, sessions);
  await expectEverythingHeld(rig, sessions);
});

it('keeps four processes with 200 saves each from hearing of a lock, and loses nothing', async () => {
  const rig = new Rig('save-race');
  // A response and a result a step, each a fenced save of its own.
  const step: readonly ScriptedCall[] = [{ name: 'work', args: {} }];
  const script = [...Array.from({ length: 100 }, () => step), []];
  const workers = await Promise.all(Array.from({ length: 4 }, () => rig.startReady({ agent: { script } })));
  const sessions = workers.map(({ job }) => `session-of-${job.worker}`);
  await expectAllFinish(workers, sessions);
  await expectEverythingHeld(rig, sessions);
  const saves = rig.log().filter(({ kind }) => kind === 'save.acknowledged');
  expect(saves.length).toBeGreaterThanOrEqual(4 * 200);
});

describe('refuses, with a code, and leaves as it is to the byte:', () => {
  it.each([
    ['a database of a newer release', 'LOUSHO_STORE_VERSION_UNSUPPORTED', makeNewer],
    ['a database of another program', 'LOUSHO_CONFIG_INVALID', makeForeign],
    ['a file that is no database', 'LOUSHO_CONFIG_INVALID', makeText],
    [
      'a database that was cut off in its first page',
      'LOUSHO_STORE_READ_FAILED',
      (file: string) => cut(file, 50),
    ],
    [
      'a database that was cut off behind its first page',
      'LOUSHO_STORE_READ_FAILED',
      (file: string) => cut(file, 4096),
    ],
  ] as const)('%s', async (_what, code, make) => {
    const file = new Rig('open-refused').databasePath;
    await make(file);
    const before = hashOf(file);
    expect(codeOf(() => new SqliteStore(file))).toBe(code);
    expect(hashOf(file)).toBe(before);
    expect(contentsBeside(file)).toBe('');
  });
});

/* ── Files that are not to be opened ── */

async function makeOurs(file: string): Promise<void> {
  const store = new SqliteStore(file);
  await store.checkpoints.acquireLease('order-7', 'somebody', 1_000);
  await store.close();
}

async function makeNewer(file: string): Promise<void> {
  await makeOurs(file);
  const database = new Sqlite(file);
  database.pragma(`user_version = ${(database.pragma('user_version', { simple: true }) as number) + 1}`);
  database.pragma('wal_checkpoint(TRUNCATE)');
  database.close();
}

function makeForeign(file: string): void {
  const database = new Sqlite(file);
  database.exec('CREATE TABLE photos (id INTEGER PRIMARY KEY)');
  database.close();
}

function makeText(file: string): void {
  fs.writeFileSync(file, 'Dear diary,\n'.repeat(1_000));
}

async function cut(file: string, length: number): Promise<void> {
  await makeOurs(file);
  fs.truncateSync(file, length);
}

function hashOf(file: string): string {
  return createHash('sha256').update(fs.readFileSync(file)).digest('hex');
}

/** Of logs and journals that would change the file when it is opened next. An index of the log holds nothing of its own. */
function contentsBeside(file: string): string {
  return fs
    .readdirSync(path.dirname(file))
    .map((name) => path.join(path.dirname(file), name))
    .filter((other) => other !== file && !other.endsWith('-shm'))
    .map((other) => fs.readFileSync(other, 'latin1'))
    .join('');
}

function codeOf(open: () => unknown): string {
  try {
    open();
  } catch (error) {
    if (error instanceof SDKError) return error.code;
    throw error;
  }
  return 'opened';
}

/* ── Runs ── */

async function expectAllFinish(
  workers: readonly WorkerProcess[],
  sessions: readonly string[],
): Promise<void> {
  const endings = await Promise.all(
    workers.map((worker, index) =>
      worker.perform(sessions[index] as string, { type: 'send', inputId: 'i1' }),
    ),
  );
  for (const ending of endings) expect(ending).toMatchObject({ finishReason: 'stop' });
  await Promise.all(workers.map((worker) => worker.end()));
}

async function expectEverythingHeld(rig: Rig, sessions: readonly string[]): Promise<void> {
  const finals = new Map(await Promise.all(sessions.map(async (id) => [id, await rig.load(id)] as const)));
  const evidence = { log: rig.log(), looks: [], finals, leaseTtlMs: 30_000 };
  expect(describeViolations(findViolations(evidence))).toBe('');
}
