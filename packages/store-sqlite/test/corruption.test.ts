/** Damage is named and stays where it is: never read as "no checkpoint", never as the state before, and never a reason to lose others. */
import type { Database } from 'better-sqlite3';
import fc from 'fast-check';
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { checksum, eventKey } from '../src/log-tables.ts';
import { approvalRecord, finished, inProgress, nextStep, sessionRecord } from './support/fixtures.ts';
import { openStore, rawDatabase, tempFile } from './support/temp-store.ts';

const PAGE_BYTES = 4_096;

/** A run of five saves beside a healthy one; key 1 and 2. */
async function twoRuns(file: string): Promise<ReturnType<typeof openStore>> {
  const store = openStore(file);
  let run = inProgress();
  await store.checkpoints.save('order-7', run);
  for (let step = 1; step < 5; step += 1) {
    run = nextStep(run, `step ${step}`);
    await store.checkpoints.save('order-7', run);
  }
  await store.checkpoints.save('healthy', inProgress());
  return store;
}

function textOf(raw: Database, seq: number): string {
  return (
    raw.prepare<[number], string>('SELECT data FROM events WHERE k = ?').pluck().get(eventKey(1, seq)) ?? ''
  );
}

/** Replaces an event, with a checksum that fits: as a program would that knows no better. */
function rewrite(raw: Database, seq: number, data: string): void {
  const k = eventKey(1, seq);
  raw.prepare('UPDATE events SET data = ?, sum = ? WHERE k = ?').run(data, checksum(k, data), k);
}

const damages: readonly (readonly [string, (raw: Database) => void])[] = [
  [
    'an event in the middle is missing',
    (raw) => raw.prepare('DELETE FROM events WHERE k = ?').run(eventKey(1, 2)),
  ],
  ['the first event is missing', (raw) => raw.prepare('DELETE FROM events WHERE k = ?').run(eventKey(1, 0))],
  ['all events are missing', (raw) => raw.prepare('DELETE FROM events WHERE k < ?').run(eventKey(2, 0))],
  ['a letter of the first event changed', (raw) => changeLetter(raw, 0)],
  ['a letter of the last event changed', (raw) => changeLetter(raw, 4)],
  ['an event is cut off', (raw) => raw.exec('UPDATE events SET data = substr(data, 1, 20) WHERE k & 7 = 3')],
  ['an event is empty', (raw) => raw.exec("UPDATE events SET data = '' WHERE k & 7 = 3")],
  ['the checksum is another', (raw) => raw.exec('UPDATE events SET sum = sum + 1 WHERE k & 7 = 4')],
  ['two events changed places', swapEvents],
  ['an event is no JSON', (raw) => rewrite(raw, 4, '{"t":')],
  ['an event is several', (raw) => rewrite(raw, 4, `${textOf(raw, 3)},${textOf(raw, 4)}`)],
  ['an event is no object', (raw) => rewrite(raw, 4, '7')],
  ['an event is null', (raw) => rewrite(raw, 4, 'null')],
  ['the facts have the wrong shape', (raw) => rewrite(raw, 0, textOf(raw, 0).replace('"run-0001"', '1'))],
  ['the facts are gone', (raw) => rewrite(raw, 0, textOf(raw, 0).replace('"f":', '"g":'))],
  ['a message has the wrong shape', (raw) => rewrite(raw, 0, textOf(raw, 0).replace('"user"', '"owner"'))],
  ['a message too many is counted', (raw) => rewrite(raw, 4, textOf(raw, 4).replace(',4,5,', ',4,6,'))],
  [
    'the row points past the events',
    (raw) => raw.exec('UPDATE runs SET first_seq = 3, facts_seq = 9 WHERE key = 1'),
  ],
];

function changeLetter(raw: Database, seq: number): void {
  raw.prepare("UPDATE events SET data = replace(data, 'e', 'f') WHERE k = ?").run(eventKey(1, seq));
}

function swapEvents(raw: Database): void {
  const [one, two, aside] = [eventKey(1, 1), eventKey(1, 2), eventKey(9, 9)];
  for (const [from, to] of [
    [one, aside],
    [two, one],
    [aside, two],
  ])
    raw.prepare('UPDATE events SET k = ? WHERE k = ?').run(to, from);
}

it.each(damages)('names the damage when %s', async (_name, damage) => {
  const file = tempFile();
  const writer = await twoRuns(file);
  damage(rawDatabase(file));
  for (const store of [writer, openStore(file)]) {
    await expect(store.checkpoints.load('order-7')).rejects.toMatchObject({
      code: 'LOUSHO_CHECKPOINT_CORRUPT',
      retryable: false,
      details: { id: 'order-7', record: 'checkpoint' },
    });
    await expect(store.checkpoints.history('order-7')).rejects.toMatchObject({
      code: 'LOUSHO_CHECKPOINT_CORRUPT',
      details: { id: 'order-7', record: 'history' },
    });
    expect(await store.checkpoints.list()).toMatchObject([
      { sessionId: 'healthy', status: 'in-progress', checkpoint: inProgress() },
      {
        sessionId: 'order-7',
        status: 'in-progress',
        checkpoint: null,
        error: { code: 'LOUSHO_CHECKPOINT_CORRUPT', retryable: false },
      },
    ]);
    expect(await store.checkpoints.load('healthy')).toEqual(inProgress());
  }
});

it.each(damages)('lets the run be deleted and begun anew when %s', async (_name, damage) => {
  const file = tempFile();
  await twoRuns(file);
  damage(rawDatabase(file));
  const { checkpoints } = openStore(file);
  await checkpoints.delete('order-7');
  expect(await checkpoints.load('order-7')).toBeNull();
  await checkpoints.save('order-7', finished());
  expect(await checkpoints.load('order-7')).toEqual(finished());
  expect(await checkpoints.history('order-7')).toHaveLength(1);
});

it.each(damages)('takes a new state for the run when %s', async (_name, damage) => {
  const file = tempFile();
  await twoRuns(file);
  damage(rawDatabase(file));
  const { checkpoints } = openStore(file);
  await checkpoints.save('order-7', finished());
  expect(await openStore(file).checkpoints.load('order-7')).toEqual(finished());
  expect(await checkpoints.history('order-7')).toHaveLength(1);
});

it('notices saves that changed places though each is whole', async () => {
  const file = tempFile();
  const { checkpoints } = openStore(file);
  for (const total of [0, 1, 2]) await checkpoints.save('order-7', inProgress({ businessState: { total } }));
  swapEvents(rawDatabase(file));
  await expect(checkpoints.load('order-7')).rejects.toMatchObject({ code: 'LOUSHO_CHECKPOINT_CORRUPT' });
});

it('lets a handle that knew the run before the damage go on behind the state that healed it', async () => {
  const file = tempFile();
  const knows = await twoRuns(file);
  changeLetter(rawDatabase(file), 0);
  await openStore(file).checkpoints.save('order-7', inProgress());
  const next = nextStep(inProgress(), 'healed');
  await knows.checkpoints.save('order-7', next);
  expect(await openStore(file).checkpoints.load('order-7')).toEqual(next);
  expect(await knows.checkpoints.history('order-7')).toHaveLength(2);
});

const headerDamages = damages.filter(([name]) =>
  /first event|last event|all events|facts|row points/.test(name),
);

it.each(headerDamages)('shows the run as damaged in the list of headers when %s', async (_name, damage) => {
  const file = tempFile();
  await twoRuns(file);
  damage(rawDatabase(file));
  expect(await openStore(file).checkpoints.listHeaders()).toMatchObject([
    { sessionId: 'healthy', header: { runId: 'run-0001' } },
    {
      sessionId: 'order-7',
      status: 'in-progress',
      header: null,
      error: { code: 'LOUSHO_CHECKPOINT_CORRUPT' },
    },
  ]);
});

it('refuses a checkpoint of a newer release by its own name', async () => {
  const file = tempFile();
  await twoRuns(file);
  const raw = rawDatabase(file);
  rewrite(raw, 0, textOf(raw, 0).replace('"version":1', '"version":2'));
  const { checkpoints } = openStore(file);
  const unsupported = { code: 'LOUSHO_STORE_VERSION_UNSUPPORTED' };
  await expect(checkpoints.load('order-7')).rejects.toMatchObject(unsupported);
  await expect(checkpoints.save('order-7', inProgress())).rejects.toMatchObject(unsupported);
  expect((await checkpoints.list()).at(-1)).toMatchObject({ checkpoint: null, error: unsupported });
  expect((await checkpoints.listHeaders()).at(-1)).toMatchObject({ header: null, error: unsupported });
});

it('finds every changed byte of what was saved', async () => {
  const file = tempFile();
  const store = await twoRuns(file);
  await store.close();
  const intact = fs.readFileSync(file);
  const place = fc
    .constantFrom(...textsOf(file))
    .chain((text) => fc.tuple(fc.constant(text), fc.nat(text.length - 1)));
  await fc.assert(
    fc.asyncProperty(place, fc.integer({ min: 1, max: 255 }), async ([text, offset], change) => {
      writeChanged(file, intact, placesOf(text, intact, offset), change);
      expect(await loadOrCode(file)).toBe('LOUSHO_CHECKPOINT_CORRUPT');
    }),
    { numRuns: 150 },
  );
});

it('names whatever else a changed byte of the file leads to', async () => {
  const file = tempFile();
  const store = await twoRuns(file);
  await store.close();
  const intact = fs.readFileSync(file);
  await fc.assert(
    fc.asyncProperty(fc.nat(intact.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      writeChanged(file, intact, [at], change);
      const outcome = await loadOrCode(file);
      expect(typeof outcome === 'string' ? outcome : 'LOUSHO_NOTHING').toMatch(/^LOUSHO_/);
    }),
    { numRuns: 300 },
  );
});

/** The events of the first run, as they lie in the file. */
function textsOf(file: string): string[] {
  const raw = rawDatabase(file);
  return raw.prepare<[number], string>('SELECT data FROM events WHERE k < ?').pluck().all(eventKey(2, 0));
}

/** Also in pages that SQLite no longer uses. */
function placesOf(text: string, bytes: Buffer, offset: number): number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) places.push(at + offset);
  return places;
}

function writeChanged(file: string, intact: Buffer, places: readonly number[], change: number): void {
  const bytes = Buffer.from(intact);
  for (const at of places) bytes.writeUInt8(bytes.readUInt8(at) ^ change, at);
  fs.writeFileSync(file, bytes);
}

/** The checkpoint of the run, or the code of the error. */
async function loadOrCode(file: string): Promise<unknown> {
  try {
    const store = openStore(file);
    try {
      return await store.checkpoints.load('order-7');
    } finally {
      await store.close();
    }
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

it('says that a run is damaged when SQLite cannot read its pages', async () => {
  const file = tempFile();
  const store = openStore(file);
  await store.checkpoints.save('order-7', inProgress({ businessState: 'x'.repeat(20_000) }));
  await store.checkpoints.save('healthy', inProgress());
  await store.close();
  const bytes = fs.readFileSync(file);
  // A page in the middle of the long state: its first four bytes lead to the next page.
  const page = Math.floor(bytes.indexOf('x'.repeat(4_000)) / PAGE_BYTES) + 2;
  bytes.fill(0xff, page * PAGE_BYTES, page * PAGE_BYTES + 4);
  fs.writeFileSync(file, bytes);
  const reopened = openStore(file);
  await expect(reopened.checkpoints.load('order-7')).rejects.toMatchObject({
    code: 'LOUSHO_CHECKPOINT_CORRUPT',
  });
  expect(await reopened.checkpoints.load('healthy')).toEqual(inProgress());
});

it('names a damaged approval, and lists the others', async () => {
  const file = tempFile();
  const { approvals } = openStore(file);
  await approvals.save(approvalRecord('a-1'));
  await approvals.save(approvalRecord('a-2'));
  await approvals.save(approvalRecord('a-3'));
  const raw = rawDatabase(file);
  raw.exec("UPDATE approvals SET record = replace(record, 'charge', 'refund') WHERE id = 'a-1'");
  raw.exec("UPDATE approvals SET record = '{', sum = 0 WHERE id = 'a-2'");
  const corrupt = (id: string): object => ({
    code: 'LOUSHO_CHECKPOINT_CORRUPT',
    details: { id, record: 'approval' },
  });
  await expect(approvals.load('a-1')).rejects.toMatchObject(corrupt('a-1'));
  await expect(approvals.load('a-2')).rejects.toMatchObject(corrupt('a-2'));
  expect((await approvals.list()).map(({ id }) => id)).toEqual(['a-3']);
  expect(await approvals.delete('a-1')).toBe(true);
});

it('names a damaged session, keeps it from being overwritten, and lets it be deleted', async () => {
  const file = tempFile();
  const { sessions } = openStore(file);
  await sessions.saveIfRevision(sessionRecord('chat'), 0);
  rawDatabase(file).exec("UPDATE events SET data = replace(data, 'Hello', 'Hallo')");
  const corrupt = { code: 'LOUSHO_CHECKPOINT_CORRUPT', details: { id: 'chat', record: 'session' } };
  const other = openStore(file);
  await expect(other.sessions.load('chat')).rejects.toMatchObject(corrupt);
  await expect(other.sessions.saveIfRevision(sessionRecord('chat'), 1)).rejects.toMatchObject(corrupt);
  await other.sessions.delete('chat');
  expect(await other.sessions.load('chat')).toBeNull();
  expect(await other.sessions.saveIfRevision(sessionRecord('chat'), 0)).toBe(true);
});
