/** Opening: what is made, what is read back, and what is refused without a byte of it changed. */
import fs from 'node:fs';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { SqliteStore } from '../src/index.ts';
import { MIGRATIONS, migrate, ownerOf } from '../src/migrations.ts';
import { inProgress } from './support/fixtures.ts';
import { openOnPlatform, openStore, rawDatabase, tempFile, tempFolder } from './support/temp-store.ts';

/** Everything in the folder, byte for byte. */
function filesIn(folder: string): Record<string, string> {
  return Object.fromEntries(
    fs.readdirSync(folder).map((name) => [name, fs.readFileSync(path.join(folder, name), 'hex')]),
  );
}

/** A closed store file with one run. */
async function storedFile(): Promise<string> {
  const file = tempFile();
  const store = new SqliteStore(file);
  await store.checkpoints.save('order-7', inProgress());
  await store.close();
  return file;
}

it('makes missing folders and marks the file as its own', async () => {
  const file = path.join(tempFolder(), 'a', 'b', 'agent.db');
  await openStore(file).checkpoints.save('order-7', inProgress());
  expect(ownerOf(rawDatabase(file))).toEqual({ applicationId: 0x4c6f7573, userVersion: 1, isEmpty: false });
});

it('takes a relative path as what it means when the store is opened', async () => {
  const folder = tempFolder();
  const before = process.cwd();
  process.chdir(folder);
  try {
    openStore('agent.db');
  } finally {
    process.chdir(before);
  }
  expect(fs.existsSync(path.join(folder, 'agent.db'))).toBe(true);
});

it('syncs every commit, in a write-ahead log, and says so when it is asked back', async () => {
  const { connection, store } = openOnPlatform(tempFile());
  expect(connection.pragma('synchronous', { simple: true })).toBe(2);
  expect(connection.pragma('journal_mode', { simple: true })).toBe('wal');
  await store.checkpoints.save('order-7', inProgress());
  // better-sqlite3 lowers the level of a WAL database at the first write of a connection.
  expect(connection.pragma('synchronous', { simple: true })).toBe(2);
});

it('syncs again when an existing file is opened', async () => {
  const file = await storedFile();
  const { connection, store } = openOnPlatform(file);
  await store.checkpoints.save('order-7', inProgress());
  expect(connection.pragma('synchronous', { simple: true })).toBe(2);
});

it('leaves syncs out when only the death of the process counts', async () => {
  const { connection, store } = openOnPlatform(tempFile(), { durability: 'process' });
  await store.checkpoints.save('order-7', inProgress());
  expect(connection.pragma('synchronous', { simple: true })).toBe(1);
});

it('waits in the driver for no more than a few milliseconds', () => {
  const { connection } = openOnPlatform(tempFile());
  expect(connection.pragma('busy_timeout', { simple: true })).toBeLessThanOrEqual(10);
});

it('keeps the write-ahead log from staying as long as it was after a burst', () => {
  const { connection } = openOnPlatform(tempFile());
  expect(connection.pragma('journal_size_limit', { simple: true })).toBeGreaterThan(0);
});

it('uses a rollback journal when it is told to', async () => {
  const file = tempFile();
  const { connection, store } = openOnPlatform(file, { journalMode: 'delete' });
  expect(connection.pragma('journal_mode', { simple: true })).toBe('delete');
  await store.checkpoints.save('order-7', inProgress());
  expect(fs.readdirSync(path.dirname(file))).toEqual(['agent.db']);
});

it.each([
  ['NFS', 0x6969],
  ['SMB', 0xfe534d42],
  ['CIFS', 0xff534d42 | 0],
  ['9p', 0x01021997],
  ['FUSE', 0x65735546],
])('uses a rollback journal on %s, and warns once', (kind, type) => {
  const { connection, warnings } = openOnPlatform(tempFile(), { platform: { fileSystemType: () => type } });
  expect(connection.pragma('journal_mode', { simple: true })).toBe('delete');
  expect(warnings).toEqual([expect.stringContaining(kind)]);
});

it('does what it is told on a network file system, without a warning', () => {
  const platform = { fileSystemType: () => 0x6969 };
  const { connection, warnings } = openOnPlatform(tempFile(), { journalMode: 'wal', platform });
  expect(connection.pragma('journal_mode', { simple: true })).toBe('wal');
  expect(warnings).toEqual([]);
});

it('refuses a database of another program, and leaves it to the byte', () => {
  const folder = tempFolder();
  const file = path.join(folder, 'other.db');
  const other = new Sqlite(file);
  other.exec('CREATE TABLE books (title TEXT); INSERT INTO books VALUES (1)');
  other.close();
  const before = filesIn(folder);
  expect(() => new SqliteStore(file)).toThrow(expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID' }));
  expect(() => new SqliteStore(file)).toThrow(file);
  expect(filesIn(folder)).toEqual(before);
});

it('refuses a database of another program that is in use', () => {
  const file = path.join(tempFolder(), 'other.db');
  const other = rawDatabase(file);
  other.pragma('journal_mode = WAL');
  other.exec('CREATE TABLE books (title TEXT); INSERT INTO books VALUES (1)');
  const [before, log] = [fs.readFileSync(file), fs.readFileSync(`${file}-wal`)];
  expect(() => new SqliteStore(file)).toThrow(expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID' }));
  expect(fs.readFileSync(file).equals(before)).toBe(true);
  expect(fs.readFileSync(`${file}-wal`).equals(log)).toBe(true);
});

it('refuses a database of another program that was killed with everything in its write-ahead log', () => {
  const other = path.join(tempFolder(), 'other.db');
  const writer = rawDatabase(other);
  writer.pragma('journal_mode = WAL');
  writer.exec('CREATE TABLE books (title TEXT); INSERT INTO books VALUES (1)');
  const file = path.join(tempFolder(), 'copy.db');
  for (const ending of ['', '-wal']) fs.copyFileSync(other + ending, file + ending);
  const [before, log] = [fs.readFileSync(file), fs.readFileSync(`${file}-wal`)];
  expect(() => new SqliteStore(file)).toThrow(expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID' }));
  expect(fs.readFileSync(file).equals(before)).toBe(true);
  expect(fs.readFileSync(`${file}-wal`).equals(log)).toBe(true);
});

it.each(['x', 'Dear diary', 'Dear diary, '.repeat(100)])(
  'refuses a file that is no database, and leaves it alone',
  (text) => {
    const folder = tempFolder();
    const file = path.join(folder, 'notes.txt');
    fs.writeFileSync(file, text);
    const before = filesIn(folder);
    expect(() => new SqliteStore(file)).toThrow(expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID' }));
    expect(() => new SqliteStore(file)).toThrow(file);
    expect(filesIn(folder)).toEqual(before);
  },
);

it('refuses a database of a newer release, and leaves it to the byte', async () => {
  const file = await storedFile();
  const raw = new Sqlite(file);
  raw.pragma('user_version = 7');
  raw.close();
  const before = fs.readFileSync(file);
  expect(() => new SqliteStore(file)).toThrow(
    expect.objectContaining({
      code: 'LOUSHO_STORE_VERSION_UNSUPPORTED',
      details: { found: 7, supported: 1 },
    }),
  );
  expect(fs.readFileSync(file).equals(before)).toBe(true);
});

it('refuses a database of a newer release whose upgrade is still in the write-ahead log', async () => {
  const file = await storedFile();
  const raw = rawDatabase(file);
  raw.pragma('user_version = 7');
  expect(() => new SqliteStore(file)).toThrow(
    expect.objectContaining({ code: 'LOUSHO_STORE_VERSION_UNSUPPORTED' }),
  );
  expect(raw.pragma('user_version', { simple: true })).toBe(7);
});

it.each([1, 10, 50, 107, 1_000, 5_000])(
  'says that it cannot read a database that was cut to %i bytes',
  async (bytes) => {
    const file = await storedFile();
    fs.truncateSync(file, bytes);
    expect(() => new SqliteStore(file)).toThrow(
      expect.objectContaining({ code: 'LOUSHO_STORE_READ_FAILED' }),
    );
    expect(() => new SqliteStore(file)).toThrow(file);
    expect(fs.statSync(file).size).toBe(bytes);
  },
);

it('opens what a process left behind that was killed while it made the file', async () => {
  const file = tempFile();
  const killed = new Sqlite(file);
  killed.pragma('journal_mode = WAL');
  killed.close();
  const store = openStore(file);
  await store.checkpoints.save('order-7', inProgress());
  expect(await store.checkpoints.load('order-7')).toEqual(inProgress());
});

it('undoes what a process left half written in a rollback journal', async () => {
  const file = tempFile();
  const store = openStore(file, { journalMode: 'delete' });
  await store.checkpoints.save('order-7', inProgress());
  // What a killed process leaves: pages of a transaction in the file, and the journal that undoes them.
  const raw = rawDatabase(file);
  raw.pragma('cache_size = 1');
  raw.pragma('cache_spill = ON');
  raw.exec('BEGIN IMMEDIATE');
  const insert = raw.prepare('INSERT INTO events VALUES (?, ?, 0)');
  for (let k = 0; k < 200; k += 1) insert.run(2 ** 40 + k, 'x'.repeat(1_000));
  const folder = tempFolder();
  const copy = path.join(folder, 'copy.db');
  for (const ending of ['', '-journal']) fs.copyFileSync(file + ending, copy + ending);
  raw.exec('ROLLBACK');
  expect(fs.statSync(copy).size).toBeGreaterThan(fs.statSync(file).size);
  const restored = openStore(copy, { journalMode: 'delete' });
  expect(await restored.checkpoints.load('order-7')).toEqual(inProgress());
  expect(rawDatabase(copy).prepare('SELECT count(*) FROM events').pluck().get()).toBe(1);
});

it('names a folder that stands where the file should be', () => {
  const folder = tempFolder();
  expect(() => new SqliteStore(folder)).toThrow(expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID' }));
  expect(() => new SqliteStore(folder)).toThrow(folder);
});

it.each(['', ' agent.db', 7])('refuses the path %j', (given) => {
  expect(() => new SqliteStore(given as string)).toThrow(
    expect.objectContaining({
      code: 'LOUSHO_CONFIG_INVALID',
      details: expect.objectContaining({ option: 'path' }),
    }),
  );
});

it('says which file it could not make, and why', () => {
  const parent = path.join(tempFolder(), 'file');
  fs.writeFileSync(parent, '');
  const file = path.join(parent, 'agent.db');
  expect(() => new SqliteStore(file)).toThrow(
    expect.objectContaining({ code: 'LOUSHO_STORE_WRITE_FAILED', cause: expect.anything() }),
  );
  expect(() => new SqliteStore(file)).toThrow(file);
});

it.each([
  Object.assign(new Error('Could not locate the bindings file. Tried: ...'), {}),
  Object.assign(new Error('was compiled against NODE_MODULE_VERSION 127'), { code: 'ERR_DLOPEN_FAILED' }),
])('says how to get the native binary when it is missing', (error) => {
  const connect = (): never => {
    throw error;
  };
  const open = (): unknown => openOnPlatform(tempFile(), { platform: { connect } });
  expect(open).toThrow(expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID', cause: error }));
  expect(open).toThrow(/npm rebuild better-sqlite3.*npm install-scripts approve better-sqlite3/);
});

it('upgrades an older file step by step, and keeps what is in it', async () => {
  const file = await storedFile();
  const raw = rawDatabase(file);
  migrate(raw, file, [...MIGRATIONS, 'CREATE TABLE later (x)', 'INSERT INTO later VALUES (5)']);
  expect(ownerOf(raw).userVersion).toBe(3);
  expect(raw.prepare('SELECT x FROM later').pluck().get()).toBe(5);
  expect(raw.prepare('SELECT id FROM runs').pluck().all()).toEqual(['order-7']);
});

it('leaves an older file as it was when a step of the upgrade fails', async () => {
  const file = await storedFile();
  const raw = rawDatabase(file);
  const steps = [...MIGRATIONS, 'CREATE TABLE later (x)', 'INSERT INTO nowhere VALUES (5)'];
  expect(() => migrate(raw, file, steps)).toThrow(/nowhere/);
  expect(ownerOf(raw).userVersion).toBe(1);
  expect(() => raw.prepare('SELECT x FROM later')).toThrow(/no such table/);
});
