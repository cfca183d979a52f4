/** The store that users open: one SQLite file with checkpoints, approvals and sessions. */
import {
  CONTRACT_VERSION,
  ConfigurationError,
  resolvePorts,
  resolveStoreOptions,
  type DurabilityOptions,
  type FullAgentStore,
  type FullCheckpointStore,
  type ApprovalStore,
  type Ports,
  type PruneOptions,
  type PruneResult,
  type ResolvedStoreOptions,
  type SessionStore,
  type StoreOptions,
} from '@lousho/contract';
import { CommitQueue } from './commit-queue.ts';
import { MEMORY_PATH } from './database-file.ts';
import { DatabaseReader } from './database-reader.ts';
import { EventLogs } from './event-logs.ts';
import { LogTables } from './log-tables.ts';
import { thisMachine } from './owner-liveness.ts';
import { keepRetention } from './retention.ts';
import { SqliteApprovals } from './sqlite-approvals.ts';
import { SqliteCheckpoints } from './sqlite-checkpoints.ts';
import { nodePlatform, openDatabase, type SqliteDatabase } from './sqlite-database.ts';
import { SqliteLeases } from './sqlite-leases.ts';
import { CheckpointLists } from './sqlite-lists.ts';
import { Pruning, pruneAll, resolvePlan } from './sqlite-prune.ts';
import { SqliteSessions } from './sqlite-sessions.ts';

export interface SqliteStoreOptions extends StoreOptions, DurabilityOptions {
  /** Default: `wal`, or `delete` on a file system that cannot share memory. */
  readonly journalMode?: 'wal' | 'delete' | undefined;
}

/**
 * Runs, approvals and sessions in one SQLite file, for any number of processes of one machine. Opens and migrates at once; missing
 * folders are made. `:memory:` keeps everything in this object alone.
 * @throws synchronously LOUSHO_CONFIG_INVALID (an option; a path that is a folder or another program's file; no native binary),
 * LOUSHO_STORE_VERSION_UNSUPPORTED, LOUSHO_STORE_READ_FAILED (cut off or damaged), LOUSHO_STORE_WRITE_FAILED (cannot be created or locked)
 */
export class SqliteStore implements FullAgentStore {
  readonly contractVersion = CONTRACT_VERSION;
  readonly checkpoints: FullCheckpointStore;
  readonly approvals: ApprovalStore;
  readonly sessions: SessionStore & Required<Pick<SessionStore, 'list'>>;
  readonly #database: SqliteDatabase;
  readonly #queue: CommitQueue;
  readonly #leases: SqliteLeases;
  readonly #pruning: Pruning;
  readonly #ports: Ports;
  #closing: Promise<void> | undefined;

  constructor(path: string, options: SqliteStoreOptions = {}) {
    const resolved = resolveSqliteOptions(options);
    const { ports, durability, historyLimit, historyMaxBytes } = resolved;
    const database = openDatabase({
      path,
      clock: ports.clock,
      durability,
      journalMode: resolved.journalMode,
    });
    const { connection } = database;
    const logs = new EventLogs(new LogTables(connection));
    const queue = new CommitQueue(database, ports.clock, logs);
    const reader = new DatabaseReader(database, ports.clock);
    const leases = new SqliteLeases(connection, queue, reader, ports);
    this.#database = database;
    this.#queue = queue;
    this.#leases = leases;
    this.#ports = ports;
    this.#pruning = new Pruning(connection, logs, leases, historyLimit);
    this.checkpoints = new SqliteCheckpoints({
      claims: {
        leases: 'atomic',
        history: true,
        list: true,
        durable: path === MEMORY_PATH ? 'memory' : durability,
        consistency: 'strong',
      },
      ...{ historyLimit, historyMaxBytes, queue, reader, logs, leases },
      lists: new CheckpointLists(connection, reader, logs),
      prune: (asked) => this.prune(asked),
      close: () => this.close(),
    });
    this.approvals = new SqliteApprovals(connection, queue, reader);
    this.sessions = new SqliteSessions(queue, reader, logs);
    const { retentionMs } = resolved;
    if (retentionMs !== undefined) {
      queue.beforeBatch = keepRetention({
        ...{ retentionMs, clock: ports.clock, queue, pruning: this.#pruning },
        warn: (message) => nodePlatform.warn(message),
      });
    }
  }

  /**
   * Removes runs whose last save is that old, with their history and sub-agents; what deleted runs left behind; approvals that nothing
   * waits on; and, when `statuses` holds `finished`, sessions without a save since then. Never a run with a live lease or an undecided
   * approval, and never a session with an unfinished turn. @throws LOUSHO_CONFIG_INVALID, LOUSHO_STORE_*
   */
  async prune(options: PruneOptions): Promise<PruneResult> {
    const plan = resolvePlan(options, this.#ports.clock);
    const isDryRun = options.dryRun === true;
    const result = await pruneAll(this.#pruning, plan, isDryRun, (write) => this.#queue.add(write));
    if (!isDryRun && this.#database.connection.open) this.#database.truncateLog();
    return result;
  }

  /** Waits for the saves that are under way. Twice is fine; later calls reject with LOUSHO_STORE_CLOSED. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#database.refuseReads();
    await this.#queue.close();
    this.#leases.close();
    this.#database.close();
  }
}

interface ResolvedSqliteOptions extends ResolvedStoreOptions {
  readonly durability: 'power' | 'process';
  readonly journalMode: 'wal' | 'delete' | undefined;
  readonly ports: Ports;
}

function resolveSqliteOptions(options: SqliteStoreOptions): ResolvedSqliteOptions {
  const { durability = 'power', journalMode, ports } = options;
  requireOneOf('durability', durability, ['power', 'process']);
  if (journalMode !== undefined) requireOneOf('journalMode', journalMode, ['wal', 'delete']);
  return {
    ...resolveStoreOptions(options),
    ...{ durability, journalMode },
    ports: resolvePorts({ ...ports, processes: ports?.processes ?? thisMachine }),
  };
}

function requireOneOf(option: string, got: string, words: readonly string[]): void {
  if (!words.includes(got))
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want: words.join(' or ') });
}
