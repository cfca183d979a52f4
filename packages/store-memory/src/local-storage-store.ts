/**
 * Checkpoints in the `localStorage` of a browser, or in anything of that shape. Each method does its work in one piece, and each value is
 * written in one piece, so a page that is closed in between leaves the state before or the state after. Tabs are not kept apart: there
 * are no leases.
 *
 * ```
 * <prefix><id>           the newest checkpoint
 * <prefix><id>#history   its newest saves, as events of the codec of `@lousho/contract`: a message is in it once
 * ```
 */
import {
  assertCheckpointId,
  ConfigurationError,
  deepFreeze,
  frozenCopy,
  listCheckpoints,
  parseCheckpoint,
  resolvePorts,
  requireKnownOptions,
  resolveStoreOptions,
  SDKError,
  storedError,
  type Checkpoint,
  type CheckpointHistoryEntry,
  type CheckpointListEntry,
  type CheckpointStore,
  type Clock,
  type DeleteOptions,
  type HistoryOptions,
  type ListOptions,
  type PruneOptions,
  type PruneResult,
  type StoreClaims,
  type StoreOptions,
} from '@lousho/contract';
import { MemoryHistory } from './memory-history.ts';
import { countsOf, prunableIds } from './memory-prune.ts';
import { MemoryState } from './memory-state.ts';
import { WebStorageHistory } from './web-storage-history.ts';
import {
  orDamage,
  refuseNewer,
  seal,
  unseal,
  WebStorageRecords,
  type WebStorageLike,
} from './web-storage.ts';

export interface LocalStorageOptions extends Pick<StoreOptions, 'historyLimit' | 'ports'> {
  /** Begins every key. Default `'lousho/'`; `''`, or a text without `#` that ends in `/` or `:`. */
  readonly prefix?: string | undefined;
}

/**
 * Claims: no leases, history, `list` where the storage can be walked through, process, strong.
 * @throws synchronously LOUSHO_CONFIG_INVALID
 */
export class LocalStorageCheckpointStore implements CheckpointStore {
  readonly claims: StoreClaims;
  /** Only where the storage has `length` and `key`. */
  declare readonly list?: (options?: ListOptions) => Promise<readonly CheckpointListEntry[]>;
  /** Only where the storage has `length` and `key`. */
  declare readonly prune?: (options: PruneOptions) => Promise<PruneResult>;
  readonly #records: WebStorageRecords;
  readonly #history: WebStorageHistory;
  readonly #clock: Clock;
  #isClosed = false;

  constructor(storage: WebStorageLike, options: LocalStorageOptions = {}) {
    const { prefix = 'lousho/' } = options;
    requireStorage(storage);
    requireKnownOptions<LocalStorageOptions>('', options, { historyLimit: true, ports: true, prefix: true });
    if (typeof prefix !== 'string' || !/^(?:|[^#]*[/:])$/.test(prefix))
      refuse('prefix', prefix, "'', or a text without # that ends in / or :");
    const { historyLimit } = resolveStoreOptions({ historyLimit: options.historyLimit });
    this.#clock = resolvePorts(options.ports).clock;
    this.#records = new WebStorageRecords(storage, prefix);
    this.#history = new WebStorageHistory(this.#records, historyLimit);
    const { canList } = this.#records;
    this.claims = Object.freeze({
      ...{ leases: 'none', history: true, list: canList, durable: 'process', consistency: 'strong' },
    } as const);
    if (!canList) return;
    this.list = async (listOptions) => this.#listAll(listOptions);
    this.prune = async (pruneOptions) => this.#pruneAll(pruneOptions);
  }

  async save(id: string, checkpoint: Checkpoint): Promise<void> {
    this.#enter('save', id);
    const next = frozenCopy(checkpoint);
    // All that may fail before the first write.
    const text = seal({ checkpoint: next });
    refuseNewer(this.#records.record(id) ?? '');
    const events = this.#history.withSave(id, next);
    // 1. The record. The page is closed here: the history lacks this save.
    this.#putRecord(id, text);
    // 2. The history.
    this.#history.put(id, events);
  }

  async load(id: string): Promise<Checkpoint | null> {
    this.#enter('load', id);
    return this.#read(id);
  }

  async delete(id: string, { keepHistory = false }: DeleteOptions = {}): Promise<void> {
    this.#enter('delete', id);
    this.#remove(id, keepHistory);
  }

  async history(id: string, { limit = Infinity }: HistoryOptions = {}): Promise<CheckpointHistoryEntry[]> {
    this.#enter('history', id);
    return this.#history.newestFirst(id, limit > 0 ? limit : 0);
  }

  /** Twice is fine; later calls reject with LOUSHO_STORE_CLOSED. */
  async close(): Promise<void> {
    this.#isClosed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
  }

  #enter(operation: string, id?: string): void {
    if (this.#isClosed) throw new SDKError('LOUSHO_STORE_CLOSED', { operation });
    if (id !== undefined) assertCheckpointId(id);
  }

  #read(id: string): Checkpoint | null {
    const text = this.#records.record(id);
    if (text === null) return null;
    return orDamage('checkpoint', id, () => {
      const { isSealed, value } = unseal(text);
      const stored = isSealed ? (value as { readonly checkpoint: unknown }).checkpoint : value;
      return deepFreeze(parseCheckpoint(stored, id));
    });
  }

  /** The past gives way to the present: where the record finds no room, the history of the run goes first. */
  #putRecord(id: string, text: string): void {
    const past = this.#records.history(id);
    try {
      this.#records.setRecord(id, text);
    } catch (error) {
      if (past === null) throw error;
      this.#records.removeHistory(id);
      try {
        this.#records.setRecord(id, text);
      } catch (stillFull) {
        // It had room a moment ago: the save that fails leaves everything as it was.
        this.#records.setHistory(id, past);
        throw stillFull;
      }
    }
  }

  #listAll(options?: ListOptions): CheckpointListEntry[] {
    this.#enter('list');
    const entries = this.#records.ids().runs.flatMap((id): CheckpointListEntry[] => {
      try {
        const checkpoint = this.#read(id);
        return checkpoint === null ? [] : [{ sessionId: id, status: checkpoint.status, checkpoint }];
      } catch (error) {
        return [{ sessionId: id, status: 'in-progress', checkpoint: null, error: storedError(error) }];
      }
    });
    return listCheckpoints(entries, options);
  }

  /** What may go is what may go from a memory with the same runs. Damaged ones are not judged. */
  #pruneAll(options: PruneOptions): PruneResult {
    this.#enter('prune');
    const everything = { historyLimit: Infinity, historyMaxBytes: Infinity };
    const state = new MemoryState(new MemoryHistory(everything));
    const { runs, histories } = this.#records.ids();
    for (const id of runs) {
      const checkpoint = orNothing(() => this.#read(id));
      if (checkpoint) state.checkpoints.set(id, checkpoint);
    }
    for (const id of histories)
      for (const { checkpoint } of orNothing(() => this.#history.newestFirst(id, Infinity))?.toReversed() ??
        [])
        state.history.append(id, checkpoint);
    const ids = prunableIds(state, this.#clock, options);
    if (options.dryRun !== true) for (const id of [...ids.runIds, ...ids.historyIds]) this.#remove(id, false);
    return countsOf(state, ids);
  }

  #remove(id: string, keepHistory: boolean): void {
    // 1. The record. The page is closed here: a history without a run, which `prune` finds.
    this.#records.removeRecord(id);
    if (!keepHistory) this.#records.removeHistory(id);
  }
}

function orNothing<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof SDKError) return undefined;
    throw error;
  }
}

function requireStorage(storage: WebStorageLike): void {
  const isStorage = (['getItem', 'setItem', 'removeItem'] as const).every(
    (method) => typeof (storage as WebStorageLike | undefined | null)?.[method] === 'function',
  );
  if (!isStorage) refuse('storage', storage, 'a Web Storage, for example localStorage');
}

function refuse(option: string, got: unknown, want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
}
