/** What a store author supplies, and what the suite needs of a test runner. */
import type { AgentStore, JsonValue, StoreClaims } from '@lousho/contract';
import type { ManualClock } from '../manual-clock.ts';

/** Storage that several handles can open. */
export interface StorageUnderTest {
  /**
   * Each call is another process as far as the store can tell: same data, new handle. Storage that only one handle can have, such as
   * the memory of a store object, gives that one each time.
   */
  open(): Promise<AgentStore>;
  /** Called once, behind the last call of every handle. */
  destroy(): Promise<void>;
  /** Damages the stored checkpoint `id`. Without it the rules about damage are skipped. */
  corrupt?(id: string): Promise<void>;
  /** The same for an approval. */
  corruptApproval?(id: string): Promise<void>;
  /** The same for a session. */
  corruptSession?(id: string): Promise<void>;
  /**
   * Lets `@lousho/testing/node` open this storage in a child process: the module's default export is `(options) => AgentStore`, or a
   * promise of one. `module` is an absolute path or a `file:` URL that plain Node can import.
   */
  readonly childProcess?: { readonly module: string; readonly options: JsonValue };
}

/** What a store author supplies. */
export interface StoreSubject {
  readonly name: string;
  /** Must equal the `claims` of the opened store, if it has them. */
  readonly claims: StoreClaims;
  /**
   * `'store'`: it has a clock of its own, for example a database server's; rules about time then use short leases and really wait.
   * Default `'given'`: the store takes the time from the clock that `createStorage` is given.
   */
  readonly clock?: 'given' | 'store' | undefined;
  /** The `historyLimit` that its handles are opened with. Without it, H3 checks only that the newest entries are kept. */
  readonly historyLimit?: number | undefined;
  /** Empty storage, apart from every other call's. */
  createStorage(clock: ManualClock): Promise<StorageUnderTest>;
}

/** What vitest, jest, mocha, bun and `node:test` share. */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly it: ((name: string, body: () => Promise<void>) => unknown) & {
    readonly skip: (name: string, body: () => Promise<void>) => unknown;
  };
}
