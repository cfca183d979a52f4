/** The inbox of a sealed store: one sealed value a record. */
import {
  deepFreeze,
  frozenCopy,
  parseApprovalRecord,
  type ApprovalRecord,
  type ApprovalStore,
} from '@lousho/contract';
import { clearApproval, hasFields } from './clear-fields.ts';
import { InOrder } from './in-order.ts';
import { isOfRecord } from './of-record.ts';
import { damaged, type RecordName, type Seals } from './sealed-text.ts';

type ListOptions = Parameters<ApprovalStore['list']>[0];

export class SealedApprovals implements ApprovalStore {
  readonly #inner: ApprovalStore;
  readonly #seals: Seals;
  readonly #order = new InOrder();

  constructor(inner: ApprovalStore, seals: Seals) {
    this.#inner = inner;
    this.#seals = seals;
  }

  async started(): Promise<void> {
    await this.#order.started();
  }

  async save(record: ApprovalRecord): Promise<void> {
    const given = frozenCopy(record);
    await this.#order.run(
      given.id,
      async () => {
        const { text } = await this.#seals.seal('approval', given.id, given);
        return deepFreeze({ ...clearApproval(given), sealed: text }) as unknown as ApprovalRecord;
      },
      async (sealed) => this.#inner.save(sealed),
    );
  }

  async load(id: string): Promise<ApprovalRecord | null> {
    const stored = await this.#inner.load(id);
    return stored === null || stored === undefined ? null : this.#open(id, stored);
  }

  /**
   * A7, for whatever cannot be opened: one record of a process without the key must not close the inbox to everybody. `load` of it says why;
   * that its run waits is in the checkpoint.
   */
  async list(options?: ListOptions): Promise<readonly ApprovalRecord[]> {
    const records: ApprovalRecord[] = [];
    for (const stored of await this.#inner.list(options)) {
      try {
        records.push(await this.#open(stored.id, stored));
      } catch (error) {
        if (!isOfRecord(error)) throw error;
      }
    }
    return records;
  }

  async delete(id: string): Promise<boolean> {
    return this.#order.run(
      id,
      async () => undefined,
      async () => this.#inner.delete(id),
    );
  }

  async #open(id: string, given: ApprovalRecord): Promise<ApprovalRecord> {
    const of: RecordName = { id, record: 'approval' };
    const stored = parseApprovalRecord(given, id);
    const { sealed } = stored as { readonly sealed?: unknown };
    const record = parseApprovalRecord(await this.#seals.open(sealed, 'approval', id, of), id);
    if (!hasFields(stored, clearApproval(record), ['sealed']))
      throw damaged(of, new Error('the fields in clear are not those that were sealed'));
    return deepFreeze(record);
  }
}
