/** The checkpoints of a sealed store: what each method does around the same method of the store below. */
import {
  assertCheckpointId,
  compareSaves,
  frozenCopy,
  listCheckpoints,
  matchesStatus,
  storedError,
  type Checkpoint,
  type CheckpointHeaderEntry,
  type CheckpointHistoryEntry,
  type CheckpointListEntry,
  type CheckpointStore,
  type HistoryOptions,
  type ListOptions,
} from '@lousho/contract';
import type { StoredCheckpoint } from './clear-fields.ts';
import type { CheckpointSealer, KnownCheckpoint } from './checkpoint-sealer.ts';
import { inBatches } from './in-batches.ts';
import { InOrder } from './in-order.ts';
import { KnownRecords } from './known-records.ts';
import type { MessageReader } from './sealed-transcripts.ts';

export class SealedCheckpoints {
  readonly #inner: CheckpointStore;
  readonly #sealer: CheckpointSealer;
  readonly #known = new KnownRecords<KnownCheckpoint>();
  readonly #order = new InOrder();

  constructor(inner: CheckpointStore, sealer: CheckpointSealer) {
    this.#inner = inner;
    this.#sealer = sealer;
  }

  /** Every save that was asked for has reached the store below. */
  async started(): Promise<void> {
    await this.#order.started();
  }

  async save(id: string, checkpoint: Checkpoint): Promise<void> {
    return this.#write(id, checkpoint, (sealed) => this.#inner.save(id, sealed));
  }

  async saveIfLeased(id: string, checkpoint: Checkpoint, owner: string, fence?: number): Promise<boolean> {
    return this.#write(
      id,
      checkpoint,
      async (sealed) => (await this.#inner.saveIfLeased?.(id, sealed, owner, fence)) ?? false,
    );
  }

  async load(id: string): Promise<Checkpoint | null> {
    const stored = await this.#inner.load(id);
    if (stored === null || stored === undefined) return null;
    const { checkpoint, known } = await this.#sealer.open(id, stored, 'checkpoint');
    if (isInProgress(checkpoint)) this.#known.loaded(id, known);
    else this.#known.forget(id);
    return checkpoint;
  }

  async delete(id: string, options?: { readonly keepHistory?: boolean | undefined }): Promise<void> {
    assertCheckpointId(id);
    await this.#order.run(
      id,
      async () => this.#known.forget(id),
      async () => this.#inner.delete(id, options),
    );
  }

  async history(id: string, options?: HistoryOptions): Promise<readonly CheckpointHistoryEntry[]> {
    const entries = (await this.#inner.history?.(id, options)) ?? [];
    const reader: MessageReader = new Map();
    const opened: CheckpointHistoryEntry[] = [];
    for (const entry of entries) {
      const { checkpoint } = await this.#sealer.open(id, entry.checkpoint, 'history', reader);
      const { stepIndex: step, savedAt, status } = checkpoint;
      opened.push(Object.freeze({ step, savedAt, status, checkpoint }));
    }
    return opened;
  }

  /** The store below filters by the status in clear. One that turns out to be damaged counts as in progress. */
  async list(options: ListOptions = {}): Promise<readonly CheckpointListEntry[]> {
    const entries = (await this.#inner.list?.(options)) ?? [];
    return listCheckpoints(await inBatches(entries, (entry) => this.#openEntry(entry)), options);
  }

  async listHeaders(options: ListOptions = {}): Promise<readonly CheckpointHeaderEntry[]> {
    const entries = (await this.#inner.listHeaders?.(options)) ?? [];
    const opened = await inBatches(entries, (entry) => this.#openHeaderEntry(entry));
    return opened
      .filter(({ status }) => matchesStatus(status, options))
      .sort((a, b) => compareSaves(a.header?.savedAt, a.sessionId, b.header?.savedAt, b.sessionId));
  }

  async #openEntry(entry: CheckpointListEntry): Promise<CheckpointListEntry> {
    const { sessionId, checkpoint: stored } = entry;
    if (stored === null) return entry;
    try {
      const { checkpoint } = await this.#sealer.open(sessionId, stored, 'checkpoint', new Map());
      return { sessionId, status: checkpoint.status, checkpoint };
    } catch (error) {
      return { sessionId, status: 'in-progress', checkpoint: null, error: storedError(error) };
    }
  }

  async #openHeaderEntry(entry: CheckpointHeaderEntry): Promise<CheckpointHeaderEntry> {
    const { sessionId, header: stored } = entry;
    if (stored === null) return entry;
    try {
      const header = await this.#sealer.openHeader(sessionId, stored);
      return { sessionId, status: header.status, header };
    } catch (error) {
      return { sessionId, status: 'in-progress', header: null, error: storedError(error) };
    }
  }

  #write<Result>(
    id: string,
    checkpoint: Checkpoint,
    store: (sealed: Checkpoint) => Promise<Result>,
  ): Promise<Result> {
    assertCheckpointId(id);
    // What counts is the value at the time of the call.
    const given = frozenCopy(checkpoint) as StoredCheckpoint;
    return this.#order.run(
      id,
      async () => {
        const before = this.#known.get(id);
        const { sealed, known } = await this.#sealer.seal(id, given, before);
        if (before?.transcript !== undefined && before.transcript !== known.transcript)
          this.#sealer.transcripts.forget(before.transcript);
        if (isInProgress(given)) this.#known.saved(id, known);
        else this.#known.forget(id);
        return sealed;
      },
      async (sealed) => store(sealed),
    );
  }
}

/** Nobody appends to a run that waits or is over; whoever resumes it loads it first. */
function isInProgress({ status = 'in-progress' }: StoredCheckpoint): boolean {
  return status === 'in-progress';
}
