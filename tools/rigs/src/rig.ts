/**
 * A folder with a store and an effect log, and the processes that work there. Nothing of it is left when the
 * test is over, unless `LOUSHO_KEEP` is set.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import type { Checkpoint, FullAgentStore } from '@lousho/contract';
import { openStore, type StoreKind } from '../workers/open-store.mjs';
import { readEffectLog, type LogLine } from './effect-log.ts';
import { WorkerProcess, type WorkerJob } from './worker-process.ts';

export type JobOptions = Omit<WorkerJob, 'worker' | 'storeKind' | 'storeFolder' | 'logPath'>;

export interface RigOptions {
  readonly storeKind?: StoreKind;
  /** Where the store is, when not beside the log. */
  readonly storeFolder?: string;
}

export class Rig {
  readonly folder: string;
  readonly logPath: string;
  readonly #storeKind: StoreKind;
  readonly #storeFolder: string;
  readonly #workers: WorkerProcess[] = [];
  #store: FullAgentStore | undefined;
  #startCount = 0;

  /** Inside a test. */
  constructor(name: string, { storeKind = 'sqlite', storeFolder }: RigOptions = {}) {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), `lousho-${name}-`));
    this.#storeKind = storeKind;
    this.#storeFolder = storeFolder ?? this.folder;
    this.logPath = path.join(this.folder, 'effects.jsonl');
    // Also when the test failed, or has timed out and hangs.
    onTestFinished(() => this.#close());
  }

  /** It loads its code and waits for `begin`: a rig that needs many processes starts the next one while the last one works. */
  start(job: JobOptions): WorkerProcess {
    const worker = new WorkerProcess({
      worker: `w${(this.#startCount += 1)}`,
      storeKind: this.#storeKind,
      storeFolder: this.#storeFolder,
      logPath: this.logPath,
      ...job,
    });
    this.#workers.push(worker);
    return worker;
  }

  async startReady(job: JobOptions): Promise<WorkerProcess> {
    const worker = this.start(job);
    const ready = worker.ready();
    worker.begin();
    await ready;
    return worker;
  }

  log(): readonly LogLine[] {
    return readEffectLog(this.logPath);
  }

  /** Of a rig on SQLite. */
  get databasePath(): string {
    return path.join(this.#storeFolder, 'runs.db');
  }

  /** Our own handle on the store. */
  get store(): FullAgentStore {
    return (this.#store ??= openStore({ kind: this.#storeKind, folder: this.#storeFolder }));
  }

  load(session: string): Promise<Checkpoint | null> {
    return this.store.checkpoints.load(session);
  }

  /** Every row of the database as it is now. Heartbeats change leases all the time: their times are left out. */
  rows(): string {
    const database = new Sqlite(this.databasePath, { readonly: true });
    try {
      const tables = database
        .prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        .pluck()
        .all();
      return tables
        .flatMap((table) => [
          `-- ${table}`,
          ...database
            .prepare<[], Record<string, unknown>>(`SELECT * FROM ${table}`)
            .all()
            .map(({ expires_at: _expiry, renew_count: _count, ...row }) => JSON.stringify(row)),
        ])
        .join('\n');
    } finally {
      database.close();
    }
  }

  async #close(): Promise<void> {
    try {
      await Promise.all(this.#workers.filter((worker) => worker.isAlive).map((worker) => worker.kill()));
      await this.#store?.close();
    } finally {
      if (process.env['LOUSHO_KEEP'] === undefined) fs.rmSync(this.folder, { recursive: true, force: true });
      else console.log(`Kept in ${this.folder}`);
    }
  }
}
