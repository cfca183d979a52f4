/** The store that users open: a folder with checkpoints, approvals and sessions in plain files. */
import path from 'node:path';
import {
  CONTRACT_VERSION,
  ConfigurationError,
  resolvePorts,
  requireKnownOptions,
  resolveStoreOptions,
  storeOptionNames,
  type Checkpoint,
  type CheckpointHeaderEntry,
  type CheckpointHistoryEntry,
  type CheckpointListEntry,
  type DeleteOptions,
  type DurabilityOptions,
  type FullAgentStore,
  type FullCheckpointStore,
  type HistoryOptions,
  type Lease,
  type ListOptions,
  type PruneOptions,
  type PruneResult,
  type StoreClaims,
  type StoreOptions,
} from '@lousho/contract';
import { fileSystemType, networkKind, thisMachine } from '@lousho/contract/node';
import { nodeFileSystem } from './file-system.ts';
import { nodeThreadCalls } from './quick-calls.ts';
import { storeParts, type StoreParts } from './store-parts.ts';

export interface FileStoreOptions extends StoreOptions, DurabilityOptions {}

/**
 * Runs, approvals and sessions in a folder on a local disk, for any number of processes of one machine. Nothing is created before the
 * first save; missing folders are made then. Claims: atomic leases, `durable: 'power'`, strong.
 * @throws synchronously LOUSHO_CONFIG_INVALID; the first call rejects with it when `dir` is a file or may not be made
 */
export function fileStore(dir: string, options: FileStoreOptions = {}): FullAgentStore {
  const parts = openParts(dir, options);
  return { contractVersion: CONTRACT_VERSION, ...parts, [Symbol.asyncDispose]: () => parts.close() };
}

/** The checkpoint part of `fileStore` alone, on the same files. @throws synchronously LOUSHO_CONFIG_INVALID */
export class FileCheckpointStore implements FullCheckpointStore {
  readonly claims: StoreClaims;
  readonly #checkpoints: FullCheckpointStore;

  constructor(dir: string, options: FileStoreOptions = {}) {
    this.#checkpoints = openParts(dir, options).checkpoints;
    this.claims = this.#checkpoints.claims;
  }

  async save(id: string, checkpoint: Checkpoint): Promise<void> {
    await this.#checkpoints.save(id, checkpoint);
  }

  async load(id: string): Promise<Checkpoint | null> {
    return this.#checkpoints.load(id);
  }

  async delete(id: string, options?: DeleteOptions): Promise<void> {
    await this.#checkpoints.delete(id, options);
  }

  async history(id: string, options?: HistoryOptions): Promise<readonly CheckpointHistoryEntry[]> {
    return this.#checkpoints.history(id, options);
  }

  async list(options?: ListOptions): Promise<readonly CheckpointListEntry[]> {
    return this.#checkpoints.list(options);
  }

  async listHeaders(options?: ListOptions): Promise<readonly CheckpointHeaderEntry[]> {
    return this.#checkpoints.listHeaders(options);
  }

  async acquireLease(id: string, owner: string, ttlMs: number): Promise<Lease | false> {
    return this.#checkpoints.acquireLease(id, owner, ttlMs);
  }

  async renewLease(id: string, owner: string, ttlMs: number, fence?: number): Promise<boolean> {
    return this.#checkpoints.renewLease(id, owner, ttlMs, fence);
  }

  async releaseLease(id: string, owner: string, fence?: number): Promise<void> {
    await this.#checkpoints.releaseLease(id, owner, fence);
  }

  async saveIfLeased(id: string, checkpoint: Checkpoint, owner: string, fence?: number): Promise<boolean> {
    return this.#checkpoints.saveIfLeased(id, checkpoint, owner, fence);
  }

  async prune(options: PruneOptions): Promise<PruneResult> {
    return this.#checkpoints.prune(options);
  }

  async close(): Promise<void> {
    await this.#checkpoints.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function openParts(dir: string, options: FileStoreOptions): StoreParts {
  requireKnownOptions<FileStoreOptions>('', options, { ...storeOptionNames, durability: true });
  const { durability = 'power', ports } = options;
  if (typeof dir !== 'string' || dir === '' || dir !== dir.trim())
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'dir',
      got: dir,
      want: 'the path of a folder, without spaces around it',
    });
  if (!['power', 'process'].includes(durability))
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'durability',
      got: durability,
      want: 'power or process',
    });
  return storeParts({
    ...resolveStoreOptions(options),
    ...{ durability, folder: path.resolve(dir), fs: nodeFileSystem },
    // Elsewhere a folder of another machine cannot be told from one of a local disk.
    thread: process.platform === 'linux' ? nodeThreadCalls : undefined,
    ports: resolvePorts({ ...ports, processes: ports?.processes ?? thisMachine }),
    networkKindOf: (folder) => networkKind(fileSystemType(folder)),
    warn: (message) => process.emitWarning(message),
  });
}
