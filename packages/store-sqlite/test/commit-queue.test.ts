/** Group commit: writes of one turn share a transaction, each keeps its own outcome, and nobody holds the thread while others write. */
import { platformClock, type Ports } from '@lousho/contract';
import { manualClock, testPorts } from '@lousho/testing';
import { expect, it } from 'vitest';
import { approvalRecord, inProgress, nextStep, sessionRecord } from './support/fixtures.ts';
import { openOnPlatform, openStore, rawDatabase, tempFile } from './support/temp-store.ts';

const TTL_MS = 30_000;

function countOf(statements: readonly string[], sql: string): number {
  return statements.filter((statement) => statement === sql).length;
}

it('commits everything that arrives in one turn of the event loop at once', async () => {
  const { store, statements } = openOnPlatform(tempFile());
  statements.length = 0;
  await Promise.all([
    ...Array.from({ length: 100 }, (_, n) => store.checkpoints.save(`order-${n}`, inProgress())),
    store.checkpoints.save('order-7', nextStep(inProgress(), 'on')),
    store.approvals.save(approvalRecord('a-1')),
    store.sessions.saveIfRevision(sessionRecord('chat'), 0),
    Promise.resolve().then(() => store.checkpoints.save('late', inProgress())),
  ]);
  expect(countOf(statements, 'BEGIN IMMEDIATE')).toBe(1);
  expect(countOf(statements, 'COMMIT')).toBe(1);
  expect((await store.checkpoints.history('order-7')).map(({ step }) => step)).toEqual([1, 0]);
});

it('takes a save, its check and one look at the log, and nothing more', async () => {
  const { store, statements } = openOnPlatform(tempFile());
  const lease = await store.checkpoints.acquireLease('order-7', 'me', TTL_MS);
  const fence = lease === false ? 0 : lease.fence;
  const run = nextStep(inProgress(), 'on');
  await store.checkpoints.saveIfLeased('order-7', inProgress(), 'me', fence);
  statements.length = 0;
  await store.checkpoints.saveIfLeased('order-7', run, 'me', fence);
  expect(statements.map((sql) => sql.split(' ')[0])).toEqual(['BEGIN', 'SELECT', 'INSERT', 'COMMIT']);
});

it('bounds what one transaction takes', async () => {
  const { store, statements } = openOnPlatform(tempFile());
  statements.length = 0;
  await Promise.all(
    Array.from({ length: 1_000 }, (_, n) => store.checkpoints.save(`order-${n}`, inProgress())),
  );
  expect(countOf(statements, 'BEGIN IMMEDIATE')).toBe(4);
});

it('syncs saves, approvals, sessions and deletes, and only those', async () => {
  const { store, connection, statements } = openOnPlatform(tempFile());
  const levels: [string, unknown][] = [];
  const note = async (name: string, call: () => Promise<unknown>): Promise<void> => {
    statements.length = 0;
    await call();
    levels.push([name, connection.pragma('synchronous', { simple: true })]);
  };
  const { checkpoints, approvals, sessions } = store;
  await note('acquire', () => checkpoints.acquireLease('order-7', 'me', TTL_MS));
  await note('save', () => checkpoints.save('order-7', inProgress()));
  await note('renew', () => checkpoints.renewLease('order-7', 'me', TTL_MS));
  await note('saveIfLeased', () => checkpoints.saveIfLeased('order-7', inProgress(), 'me'));
  await note('release', () => checkpoints.releaseLease('order-7', 'me'));
  await note('approval', () => approvals.save(approvalRecord('a-1')));
  await note('acquire', () => checkpoints.acquireLease('order-7', 'me', TTL_MS));
  await note('delete', () => checkpoints.delete('order-7'));
  await note('acquire', () => checkpoints.acquireLease('order-7', 'me', TTL_MS));
  await note('session', () => sessions.saveIfRevision(sessionRecord('chat'), 0));
  await note('renew and save', () =>
    Promise.all([checkpoints.renewLease('order-7', 'me', TTL_MS), checkpoints.save('order-8', inProgress())]),
  );
  const [visible, synced] = [1, 2];
  expect(levels).toEqual([
    ['acquire', visible],
    ['save', synced],
    ['renew', visible],
    ['saveIfLeased', synced],
    ['release', visible],
    ['approval', synced],
    ['acquire', visible],
    ['delete', synced],
    ['acquire', visible],
    ['session', synced],
    ['renew and save', synced],
  ]);
});

it('syncs leases too in a rollback journal, which an unsynced commit could damage', async () => {
  const { store, connection } = openOnPlatform(tempFile(), { journalMode: 'delete' });
  await store.checkpoints.acquireLease('order-7', 'me', TTL_MS);
  expect(connection.pragma('synchronous', { simple: true })).toBe(2);
});

it('writes heartbeats before the saves of others, but never past a write of their own run', async () => {
  const { store, statements } = openOnPlatform(tempFile());
  const { checkpoints } = store;
  for (const id of ['beats', 'deleted']) await checkpoints.acquireLease(id, 'me', TTL_MS);
  statements.length = 0;
  const outcomes = await Promise.all([
    checkpoints.save('order-7', inProgress()),
    checkpoints.delete('deleted'),
    checkpoints.renewLease('beats', 'me', TTL_MS),
    checkpoints.renewLease('deleted', 'me', TTL_MS),
  ]);
  expect(outcomes.slice(2)).toEqual([true, false]);
  const placeOf = (sql: string): number => statements.findIndex((statement) => statement.includes(sql));
  expect(placeOf("FROM leases WHERE id = 'beats'")).toBeGreaterThan(0);
  expect(placeOf("FROM leases WHERE id = 'beats'")).toBeLessThan(placeOf('INSERT INTO runs'));
  expect(countOf(statements, 'COMMIT')).toBe(1);
});

it('lets a heartbeat overtake more saves than one transaction takes', async () => {
  const { store, statements } = openOnPlatform(tempFile());
  await store.checkpoints.acquireLease('beats', 'me', TTL_MS);
  statements.length = 0;
  await Promise.all([
    ...Array.from({ length: 600 }, (_, n) => store.checkpoints.save(`order-${n}`, inProgress())),
    store.checkpoints.renewLease('beats', 'me', TTL_MS),
  ]);
  const beat = statements.findIndex((sql) => sql.includes("FROM leases WHERE id = 'beats'"));
  expect(statements.slice(0, beat)).toEqual([expect.stringContaining('synchronous'), 'BEGIN IMMEDIATE']);
  expect(countOf(statements, 'COMMIT')).toBe(3);
});

it('lets one write fail alone', async () => {
  const file = tempFile();
  const store = openStore(file);
  await store.checkpoints.save('order-3', inProgress());
  rawDatabase(file).exec(`
    CREATE TRIGGER refuse BEFORE INSERT ON events WHEN new.data LIKE '%poison%'
    BEGIN SELECT raise(ABORT, 'no poison'); END`);
  const outcomes = await Promise.allSettled([
    ...[0, 1, 2].map((n) => store.checkpoints.save(`order-${n}`, inProgress())),
    store.checkpoints.save('order-3', nextStep(inProgress(), 'poison')),
    store.checkpoints.saveIfLeased('order-4', inProgress(), 'nobody'),
    ...[5, 6].map((n) => store.checkpoints.save(`order-${n}`, inProgress())),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual([
    ...['fulfilled', 'fulfilled', 'fulfilled'],
    ...['rejected', 'fulfilled', 'fulfilled', 'fulfilled'],
  ]);
  expect(outcomes[3]).toMatchObject({
    reason: {
      code: 'LOUSHO_STORE_WRITE_FAILED',
      details: { operation: 'save', id: 'order-3' },
      cause: { code: 'SQLITE_CONSTRAINT_TRIGGER' },
    },
  });
  expect(outcomes[4]).toMatchObject({ value: false });
  const stored = (await store.checkpoints.list()).map(({ sessionId }) => sessionId);
  expect(stored).toEqual(['order-0', 'order-1', 'order-2', 'order-3', 'order-5', 'order-6']);
  // The failed one left nothing behind, and its run goes on.
  await store.checkpoints.save('order-3', nextStep(inProgress(), 'bread'));
  expect(await store.checkpoints.history('order-3')).toHaveLength(2);
});

it('goes on where the file is after a transaction that was rolled back', async () => {
  const file = tempFile();
  const store = openStore(file);
  let run = inProgress();
  await store.checkpoints.save('order-7', run);
  const raw = rawDatabase(file);
  raw.exec("CREATE TRIGGER refuse BEFORE UPDATE ON runs BEGIN SELECT raise(ABORT, 'no'); END");
  const fails = store.checkpoints.save('order-7', { ...nextStep(run, 'x'), runId: 'another' });
  await expect(fails).rejects.toMatchObject({ code: 'LOUSHO_STORE_WRITE_FAILED' });
  raw.exec('DROP TRIGGER refuse');
  for (const text of ['on', 'and on']) {
    run = nextStep(run, text);
    await store.checkpoints.save('order-7', run);
  }
  expect(await openStore(file).checkpoints.load('order-7')).toEqual(run);
  expect(await store.checkpoints.history('order-7')).toHaveLength(3);
});

it('waits for another writer without holding the thread', async () => {
  const file = tempFile();
  const store = openStore(file);
  await store.checkpoints.save('order-7', inProgress());
  const raw = rawDatabase(file);
  raw.exec('BEGIN IMMEDIATE');
  let longestGapMs = 0;
  let lastMs = platformClock.monotonicMs();
  const ticking = setInterval(() => {
    longestGapMs = Math.max(longestGapMs, platformClock.monotonicMs() - lastMs);
    lastMs = platformClock.monotonicMs();
  }, 5);
  const saves = Promise.all([
    store.checkpoints.save('order-7', nextStep(inProgress(), 'on')),
    store.approvals.save(approvalRecord('a-1')),
    store.checkpoints.acquireLease('order-8', 'me', TTL_MS),
    store.checkpoints.delete('order-9'),
  ]);
  await wait(300);
  raw.exec('COMMIT');
  await saves;
  clearInterval(ticking);
  // A busy machine may stop us for a while; a wait of 300 ms in the driver would show.
  expect(longestGapMs).toBeLessThan(200);
  expect(await store.checkpoints.history('order-7')).toHaveLength(2);
});

/** In real time: another process would really hold the lock that long. */
function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    platformClock.setTimer(resolve, ms);
  });
}

it('gives up after ten seconds, says why, and works again afterwards', async () => {
  const file = tempFile();
  const clock = manualClock();
  const store = openStore(file, { ports: testPorts(clock) });
  const raw = rawDatabase(file);
  raw.exec('BEGIN IMMEDIATE');
  const [first, second] = [
    store.checkpoints.save('order-7', inProgress()),
    store.checkpoints.acquireLease('order-8', 'me', TTL_MS),
  ];
  const outcomes: unknown[] = [];
  for (const call of [first, second]) call.then(undefined, (error: unknown) => outcomes.push(error));
  await clock.advance(9_000);
  const late = store.checkpoints.save('order-9', inProgress());
  await clock.advance(900);
  expect(outcomes).toEqual([]);
  await clock.advance(200);
  const failed = { code: 'LOUSHO_STORE_WRITE_FAILED', retryable: true, cause: { code: 'SQLITE_BUSY' } };
  expect(outcomes).toMatchObject([
    { ...failed, details: { operation: 'save', id: 'order-7' } },
    { ...failed, details: { operation: 'acquireLease', id: 'order-8' } },
  ]);
  raw.exec('ROLLBACK');
  await clock.advance(100);
  await late;
  await store.checkpoints.save('order-7', inProgress());
  expect(await store.checkpoints.load('order-7')).toEqual(inProgress());
});

it('waits on close for writes that wait for others', async () => {
  const file = tempFile();
  const clock = manualClock();
  const store = openStore(file, { ports: { clock } satisfies Partial<Ports> });
  const raw = rawDatabase(file);
  raw.exec('BEGIN IMMEDIATE');
  const saving = store.checkpoints.save('order-7', inProgress());
  await clock.advance(100);
  const closing = store.close();
  raw.exec('ROLLBACK');
  await clock.advance(100);
  await saving;
  await closing;
  expect(raw.prepare('SELECT id FROM runs').pluck().all()).toEqual(['order-7']);
});

it('waits for a reader in the way of a rollback journal, and reads while others write there', async () => {
  const file = tempFile();
  const store = openStore(file, { journalMode: 'delete' });
  await store.checkpoints.save('order-7', inProgress());
  const raw = rawDatabase(file);
  raw.exec('BEGIN; SELECT * FROM runs');
  raw.prepare('SELECT * FROM runs').get();
  const saving = store.checkpoints.save('order-7', nextStep(inProgress(), 'on'));
  await wait(50);
  raw.exec('COMMIT');
  await saving;
  raw.exec('BEGIN EXCLUSIVE');
  const loading = store.checkpoints.load('order-7');
  await wait(50);
  raw.exec('COMMIT');
  expect((await loading)?.stepIndex).toBe(1);
});

it('says after ten seconds that it could not read', async () => {
  const file = tempFile();
  const clock = manualClock();
  const store = openStore(file, { journalMode: 'delete', ports: { clock } });
  const raw = rawDatabase(file);
  raw.exec('BEGIN EXCLUSIVE');
  const failed = expect(store.checkpoints.load('order-7')).rejects.toMatchObject({
    code: 'LOUSHO_STORE_READ_FAILED',
    details: { operation: 'load', id: 'order-7' },
    cause: { code: 'SQLITE_BUSY' },
  });
  await clock.advance(11_000);
  await failed;
  raw.exec('COMMIT');
  expect(await store.checkpoints.load('order-7')).toBeNull();
});
