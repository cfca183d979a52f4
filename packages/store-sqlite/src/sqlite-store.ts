/** The store that users open: one SQLite file with checkpoints, approvals and sessions. */
import {
  CONTRACT_VERSION,
  ConfigurationError,
  resolvePorts,
  requireKnownOptions,
  resolveStoreOptions,
  storeOptionNames,
  type ApprovalStore,
  type DurabilityOptions,
  type FullAgentStore,
  type FullCheckpointStore,
  type Ports,
  type PruneOptions,
  type PruneResult,
  type ResolvedStoreOptions,
  type SessionStore,
  type StoreOptions,
} from '@lousho/contract';
import { thisMachine } from '@lousho/contract/node';
import { MEMORY_PATH } from './database-file.ts';
import { nodePlatform, openDatabase } from './open-database.ts';
import { openError } from './sqlite-errors.ts';
import { storeParts, type StoreParts } from './store-parts.ts';

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
  readonly #parts: StoreParts;

  constructor(path: string, options: SqliteStoreOptions = {}) {
    const resolved = resolveSqliteOptions(options);
    const { durability, journalMode } = resolved;
    const database = openDatabase({ path, durability, journalMode });
    try {
      this.#parts = storeParts(database, {
        ...resolved,
        durable: path === MEMORY_PATH ? 'memory' : durability,
        warn: (message) => nodePlatform.warn(message),
      });
    } catch (error) {
      database.close();
      throw openError(error, path);
    }
    this.checkpoints = this.#parts.checkpoints;
    this.approvals = this.#parts.approvals;
    this.sessions = this.#parts.sessions;
  }

  /**
   * Removes runs whose last save is that old, with their history, approvals and sub-agents; what deleted runs left behind; old approvals
   * that nothing waits on; and, when `statuses` holds `finished`, sessions without a save since then. Never a run with a live lease or an
   * undecided approval, and never a session with a turn that stays. @throws LOUSHO_CONFIG_INVALID, LOUSHO_STORE_*
   */
  async prune(options: PruneOptions): Promise<PruneResult> {
    return this.#parts.prune(options);
  }

  /** Waits for the saves that are under way. Twice is fine; later calls reject with LOUSHO_STORE_CLOSED. */
  async close(): Promise<void> {
    await this.#parts.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.close();
  }
}

interface ResolvedSqliteOptions extends ResolvedStoreOptions {
  readonly durability: 'power' | 'process';
  readonly journalMode: 'wal' | 'delete' | undefined;
  readonly ports: Ports;
}

function resolveSqliteOptions(options: SqliteStoreOptions): ResolvedSqliteOptions {
  const names = { ...storeOptionNames, durability: true, journalMode: true } as const;
  requireKnownOptions<SqliteStoreOptions>('', options, names);
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
