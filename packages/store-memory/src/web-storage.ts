/** The part of `localStorage` that we use, and the records in it. */
import { ConfigurationError, SDKError, isCheckpointId } from '@lousho/contract';

/** The part of `localStorage` that we use. */
export interface WebStorageLike {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
  /** With `key`: makes `list` possible. */
  readonly length?: number;
  key?(index: number): string | null;
}

/** Format of the values that this release writes. */
const FORMAT = 1;
/** Ahead of the fields, which the checksum is of. */
const START = /^\{"format":(\d{1,9}),"sum":"([0-9a-f]{8})",/;
/** No id holds a `#`. */
const HISTORY = '#history';

/** Values by the id of their run. Whatever the storage throws becomes an error with a code. */
export class WebStorageRecords {
  constructor(
    private readonly storage: WebStorageLike,
    private readonly prefix: string,
  ) {}

  get canList(): boolean {
    return typeof this.storage.length === 'number' && typeof this.storage.key === 'function';
  }

  record(id: string): string | null {
    return this.#get(this.prefix + id, id);
  }

  history(id: string): string | null {
    return this.#get(this.prefix + id + HISTORY, id);
  }

  /** @throws synchronously LOUSHO_STORE_WRITE_FAILED, with what was stored before in its place */
  setRecord(id: string, text: string): void {
    this.#set(this.prefix + id, text, id);
  }

  /** @throws synchronously as `setRecord` does */
  setHistory(id: string, text: string): void {
    this.#set(this.prefix + id + HISTORY, text, id);
  }

  removeRecord(id: string): void {
    this.#change('delete', id, () => this.storage.removeItem(this.prefix + id));
  }

  removeHistory(id: string): void {
    this.#change('delete', id, () => this.storage.removeItem(this.prefix + id + HISTORY));
  }

  /** Ids of runs, and of histories whose run may be gone. */
  ids(): { readonly runs: readonly string[]; readonly histories: readonly string[] } {
    const [runs, histories]: [string[], string[]] = [[], []];
    for (const key of this.#keys()) {
      if (!key.startsWith(this.prefix)) continue;
      const rest = key.slice(this.prefix.length);
      const id = rest.endsWith(HISTORY) ? rest.slice(0, -HISTORY.length) : rest;
      // Keys of others: the storage belongs to the whole page.
      if (isCheckpointId(id)) (id === rest ? runs : histories).push(id);
    }
    return { runs, histories };
  }

  #keys(): string[] {
    return this.#read('list', undefined, () => {
      const keys: string[] = [];
      for (let index = 0; index < (this.storage.length ?? 0); index += 1)
        keys.push(this.storage.key?.(index) ?? '');
      return keys;
    });
  }

  #get(key: string, id: string): string | null {
    return this.#read('load', id, () => this.storage.getItem(key));
  }

  #set(key: string, text: string, id: string): void {
    this.#change('save', id, () => this.storage.setItem(key, text));
  }

  /** Browsers throw when the user has forbidden the page to store anything. */
  #read<Value>(operation: string, id: string | undefined, perform: () => Value): Value {
    try {
      return perform();
    } catch (cause) {
      const details = { operation, ...(id === undefined ? {} : { id }) };
      throw new SDKError('LOUSHO_STORE_READ_FAILED', details, { cause });
    }
  }

  #change(operation: string, id: string, perform: () => void): void {
    try {
      perform();
    } catch (cause) {
      const isFull = (cause as { readonly name?: unknown } | null)?.name === 'QuotaExceededError';
      const message = isFull
        ? `There is no room for "${id}": the storage of this page is full. Delete or prune old runs.`
        : undefined;
      throw new SDKError('LOUSHO_STORE_WRITE_FAILED', { operation, id }, { cause, message });
    }
  }
}

/** `fields` as JSON with a checksum; never empty. */
export function seal(fields: object): string {
  const body = JSON.stringify(fields).slice(1);
  return `{"format":${FORMAT},"sum":"${checksumOf(body)}",${body}`;
}

/**
 * What was sealed; a value without a checksum as it is: so it was stored before there was one.
 * @throws LOUSHO_STORE_VERSION_UNSUPPORTED, and any other error when the text is not what was written
 */
export function unseal(text: string): { readonly isSealed: boolean; readonly value: unknown } {
  const start = START.exec(text);
  if (start === null) return { isSealed: false, value: JSON.parse(text) };
  refuseNewer(text);
  const body = text.slice(start[0].length);
  if (checksumOf(body) !== start[2]) throw new Error('the value does not match its checksum');
  return { isSealed: true, value: JSON.parse(`{${body}`) };
}

/** FNV-1a over the UTF-16 units: each step can be undone, so one unit that changes always shows. */
function checksumOf(text: string): string {
  let sum = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    sum = Math.imul(sum ^ text.charCodeAt(index), 0x01000193);
  return (sum >>> 0).toString(16).padStart(8, '0');
}

/** What is there is of a later release: it stays as it is. @throws synchronously LOUSHO_STORE_VERSION_UNSUPPORTED */
export function refuseNewer(text: string): void {
  const found = Number(START.exec(text)?.[1] ?? 0);
  if (found > FORMAT)
    throw new ConfigurationError('LOUSHO_STORE_VERSION_UNSUPPORTED', { found, supported: FORMAT });
}

export function orDamage<Value>(record: 'checkpoint' | 'history', id: string, read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof SDKError) throw cause;
    throw new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id, record }, { cause });
  }
}
