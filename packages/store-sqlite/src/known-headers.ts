/** Headers as they were listed last: whoever looks for runs to go on with looks again and again, and most of them are as they were. */
import { deepFreeze, type CheckpointHeaderEntry, type CheckpointStatus } from '@lousho/contract';

/** id, status; then key, text and checksum of the event with the facts and of the last event. */
export type HeaderRow = readonly [
  string,
  CheckpointStatus,
  number | null,
  string | null,
  number | null,
  number | null,
  string | null,
  number | null,
];

interface KnownHeader {
  readonly row: HeaderRow;
  readonly entry: CheckpointHeaderEntry;
}

const MAX_KNOWN = 1_000;
/** Of the two events of a run. Longer ones are read each time. */
const MAX_TEXT_LENGTH = 8 * 1024;

export class KnownHeaders {
  readonly #byId = new Map<string, KnownHeader>();

  /** The entry of this row: the one of last time when all that is stored is the same, else what `read` makes of it. */
  entryOf(row: HeaderRow, read: (row: HeaderRow) => CheckpointHeaderEntry): CheckpointHeaderEntry {
    const [id, , , facts, , , last] = row;
    const known = this.#byId.get(id);
    if (known !== undefined && known.row.every((value, index) => value === row[index])) return known.entry;
    const entry = deepFreeze(read(row));
    if ((facts?.length ?? 0) + (last?.length ?? 0) <= MAX_TEXT_LENGTH) this.#keep(id, { row, entry });
    else this.#byId.delete(id);
    return entry;
  }

  #keep(id: string, known: KnownHeader): void {
    this.#byId.set(id, known);
    if (this.#byId.size <= MAX_KNOWN) return;
    for (const oldest of this.#byId.keys()) {
      this.#byId.delete(oldest);
      return;
    }
  }
}
