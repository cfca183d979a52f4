/** The inbox of pauses: one file each, replaced whole. */
import path from 'node:path';
import {
  assertCheckpointId,
  deepFreeze,
  isCheckpointId,
  parseApprovalRecord,
  type ApprovalRecord,
  type ApprovalStore,
} from '@lousho/contract';
import { decodeRecord, encodeRecord } from './checked-record.ts';
import { isTemp, type Disk } from './disk.ts';
import { damageError, isDamage } from './file-errors.ts';
import { fileNameOf } from './file-names.ts';
import type { KeyedQueue } from './keyed-queue.ts';
import type { Operations } from './operations.ts';
import type { StoreFormat } from './store-format.ts';
import type { StorePlace } from './store-place.ts';

export interface ApprovalsDeps {
  readonly disk: Disk;
  readonly place: StorePlace;
  /** The folder of all approvals. */
  readonly root: string;
  readonly operations: Operations;
  readonly format: StoreFormat;
  readonly queue: KeyedQueue;
}

const SUFFIX = '.json';
/** Enough to keep a disk busy, and few against the files that a process may have open. */
const READS_AT_ONCE = 8;

export class FileApprovals implements ApprovalStore {
  readonly #deps: ApprovalsDeps;

  constructor(deps: ApprovalsDeps) {
    this.#deps = deps;
  }

  async save(record: ApprovalRecord): Promise<void> {
    const { disk, place, root, operations, format, queue } = this.#deps;
    const { id } = record;
    assertCheckpointId(id);
    await operations.perform({ name: 'approvals.save', id, kind: 'write' }, async () => {
      const bytes = encodeRecord(record);
      await format.assertWritable();
      await queue.run(id, async () => {
        await place.assertSame();
        await disk.makeFolders(root);
        // 1. The whole record under a name that nobody looks for. Crash here: it is swept away later.
        const temp = await disk.writeTemp(root, bytes, { sync: true });
        // 2. Its name. Crash here: a power cut may bring back what was there before, and nobody was told otherwise.
        await disk.replace(temp, this.#fileOf(id));
        await disk.syncFolder(root);
      });
    });
  }

  async load(id: string): Promise<ApprovalRecord | null> {
    const { operations, format } = this.#deps;
    return operations.perform({ name: 'approvals.load', id, kind: 'read' }, async () => {
      await format.assertReadable();
      return isCheckpointId(id) ? ((await this.#read(id)) ?? null) : null;
    });
  }

  /** A damaged record is left out: the run that waits shows its pause, and `load` names the damage. */
  async list({ sessionId }: { readonly sessionId?: string | undefined } = {}): Promise<
    readonly ApprovalRecord[]
  > {
    const { operations, format } = this.#deps;
    return operations.perform({ name: 'approvals.list', kind: 'read' }, async () => {
      await format.assertReadable();
      const records = await this.all();
      return records
        .filter((record) => sessionId === undefined || record.sessionId === sessionId)
        .sort(compareCreation);
    });
  }

  /** `true` to the one whose call took the file away. */
  async delete(id: string): Promise<boolean> {
    const { operations, format, queue } = this.#deps;
    return operations.perform({ name: 'approvals.delete', id, kind: 'write' }, async () => {
      await format.assertReadable();
      return isCheckpointId(id) && queue.run(id, () => this.#remove(id));
    });
  }

  /** Every record that can be read, in no order. */
  async all(): Promise<ApprovalRecord[]> {
    const { disk, root } = this.#deps;
    const names = ((await disk.listIfThere(root)) ?? []).filter(
      (name) => name.endsWith(SUFFIX) && !isTemp(name),
    );
    const records: ApprovalRecord[] = [];
    const readers = Array.from({ length: READS_AT_ONCE }, async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        const record = await this.#readIntact(name);
        if (record !== undefined) records.push(record);
      }
    });
    await Promise.all(readers);
    return records;
  }

  /** Only while it is the one that was looked at: its run may come to wait on it anew. */
  async removeUnchanged({ id, createdAt }: ApprovalRecord): Promise<boolean> {
    const isUnchanged = async (): Promise<boolean> => (await this.#read(id))?.createdAt === createdAt;
    return this.#deps.queue.run(id, async () => (await isUnchanged()) && this.#remove(id));
  }

  async #remove(id: string): Promise<boolean> {
    const { disk, place, root } = this.#deps;
    await place.assertSame();
    if (await this.#isOfAnother(id)) return false;
    const isRemoved = await disk.remove(this.#fileOf(id));
    if (isRemoved) await disk.syncFolder(root);
    return isRemoved;
  }

  async #read(id: string): Promise<ApprovalRecord | undefined> {
    const bytes = await this.#deps.disk.readIfThere(this.#fileOf(id));
    if (bytes === undefined) return undefined;
    try {
      const record = parseApprovalRecord(decodeRecord(bytes), id);
      if (record.id !== id) throw new Error(`it is the approval "${record.id}"`);
      return deepFreeze(record);
    } catch (error) {
      throw isDamage(error) ? error : damageError(error, 'approval', id);
    }
  }

  async #readIntact(name: string): Promise<ApprovalRecord | undefined> {
    const bytes = await this.#deps.disk.readIfThere(path.join(this.#deps.root, name));
    if (bytes === undefined) return undefined;
    try {
      const stored = decodeRecord(bytes) as { readonly id?: unknown };
      if (!isCheckpointId(stored.id) || fileNameOf(stored.id) + SUFFIX !== name) return undefined;
      return deepFreeze(parseApprovalRecord(stored, stored.id));
    } catch {
      return undefined;
    }
  }

  /** Two ids of one hash: the file of the first is not the second's to take away. */
  async #isOfAnother(id: string): Promise<boolean> {
    const bytes = await this.#deps.disk.readIfThere(this.#fileOf(id));
    try {
      return bytes !== undefined && (decodeRecord(bytes) as { readonly id: unknown }).id !== id;
    } catch {
      // Nobody can read it, so it is what has its name.
      return false;
    }
  }

  #fileOf(id: string): string {
    return path.join(this.#deps.root, fileNameOf(id) + SUFFIX);
  }
}

function compareCreation(a: ApprovalRecord, b: ApprovalRecord): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
