/** Stores in a folder that goes with the test, and a look at their file past them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { resolvePorts, resolveStoreOptions, type Ports, type StoreOptions } from '@lousho/contract';
import { onTestFinished } from 'vitest';
import { SqliteStore, type SqliteStoreOptions } from '../../src/index.ts';
import { nodePlatform, openDatabase, type Platform } from '../../src/open-database.ts';
import { storeParts, type StoreParts } from '../../src/store-parts.ts';

/** A new folder, removed when the test ends. */
export function tempFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-sqlite-'));
  onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function tempFile(): string {
  return path.join(tempFolder(), 'agent.db');
}

/** Closed when the test ends. Its commits are not synced, which no test can tell apart; those about syncs say so. */
export function openStore(file: string = tempFile(), options: SqliteStoreOptions = {}): SqliteStore {
  const store = new SqliteStore(file, { durability: 'process', ...options });
  onTestFinished(() => store.close());
  return store;
}

/** The file as another program sees it. */
export function rawDatabase(file: string): Database {
  const database = new Sqlite(file);
  onTestFinished(() => {
    database.close();
  });
  return database;
}

export interface StoreOnPlatform {
  readonly store: StoreParts;
  readonly connection: Database;
  readonly warnings: readonly string[];
  /** Every statement that the store ran, in order. */
  readonly statements: string[];
}

/** A store whose platform the test decides, with its connection in hand. */
export function openOnPlatform(
  file: string,
  {
    platform,
    ports,
    ...options
  }: StoreOptions &
    Pick<SqliteStoreOptions, 'durability' | 'journalMode'> & {
      readonly platform?: Partial<Platform>;
      readonly ports?: Partial<Ports>;
    } = {},
): StoreOnPlatform {
  const warnings: string[] = [];
  const statements: string[] = [];
  const whole: Platform = {
    ...nodePlatform,
    warn: (message) => warnings.push(message),
    connect: (where, asked) =>
      new Sqlite(where, { ...asked, verbose: (sql) => statements.push(String(sql)) }),
    ...platform,
  };
  const { durability = 'power', journalMode } = options;
  const database = openDatabase({ path: file, durability, journalMode }, whole);
  const store = storeParts(database, {
    ...resolveStoreOptions(options),
    ports: resolvePorts(ports),
    durable: durability,
    warn: whole.warn,
  });
  onTestFinished(() => store.close());
  return { store, connection: database.connection, warnings, statements };
}
