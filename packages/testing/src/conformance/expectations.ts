/** What rules assert. Each assertion on stored data takes the call that reads it: an eventual store is asked until it gives what is expected. */
import {
  SDKError,
  storedError,
  type Checkpoint,
  type CheckpointStore,
  type HistoryOptions,
  type Lease,
} from '@lousho/contract';
import { sameJson } from './difference.ts';
import { Mismatch } from './failure.ts';

/** Codes that C3 names. */
const NAMED_CODES =
  /^LOUSHO_(?:CHECKPOINT_CORRUPT|CHECKPOINT_TOO_LARGE|SESSION_ID_INVALID|CONFIG_INVALID|STORE_[A-Z_]+)$/;

export abstract class Expectations {
  /** One read, or as many as an eventual store may need until the value is right. The last value either way. */
  protected abstract read<Value>(
    read: () => Promise<Value>,
    isRight: (value: Value) => boolean,
  ): Promise<Value>;

  /** What `read` gives equals `expected` as JSON. */
  async expectEqual(read: () => Promise<unknown>, expected: unknown, hint: string): Promise<void> {
    assertEqual(await this.read(read, (value) => sameJson(expected, value)), expected, hint);
  }

  /** `null` or `undefined`. */
  async expectNothing(read: () => Promise<unknown>, hint: string): Promise<void> {
    const value = await this.read(read, isNothing);
    if (!isNothing(value)) throw new Mismatch(null, value, hint);
  }

  async expectLoads(
    handles: Iterable<CheckpointStore>,
    id: string,
    expected: Checkpoint,
    hint: string,
  ): Promise<void> {
    for (const handle of handles) await this.expectEqual(() => handle.load(id), expected, hint);
  }

  async expectGone(handles: Iterable<CheckpointStore>, id: string, hint: string): Promise<void> {
    for (const handle of handles) await this.expectNothing(() => handle.load(id), hint);
  }

  /** The history holds these saves, given oldest first, and no others. Nothing is asked of a store without one. */
  async expectSaves(
    handles: Iterable<CheckpointStore>,
    id: string,
    saves: readonly Checkpoint[],
    hint: string,
    options?: HistoryOptions,
  ): Promise<void> {
    for (const handle of handles)
      if (handle.history !== undefined)
        await this.expectEqual(() => savesIn(handle, id, options), [...saves].reverse(), hint);
  }

  /** The call rejects with this code. */
  async expectRefused(call: () => Promise<unknown>, code: string, hint: string): Promise<void> {
    const outcome = await this.read(
      () => outcomeOf(call),
      ({ error }) => codeOf(error) === code,
    );
    if (codeOf(outcome.error) !== code) throw new Mismatch(code, describeOutcome(outcome), hint);
  }

  /** The call resolves, or rejects with a code that C3 names. */
  async expectNamedErrors(what: string, call: () => Promise<unknown>): Promise<void> {
    const outcome = await this.read(
      () => outcomeOf(call),
      () => true,
    );
    if (outcome.error === undefined || isNamedError(outcome.error)) return;
    throw new Mismatch(
      `${what} resolves, or rejects with an SDKError whose code C3 names`,
      describeOutcome(outcome),
      'Wrap what your database throws: new SDKError("LOUSHO_STORE_READ_FAILED", { operation, id }, { cause }).',
    );
  }

  async expectGranted(call: () => Promise<Lease | boolean>, hint: string): Promise<Lease | true> {
    const lease = await this.read(call, (value) => value !== false);
    if (lease === false) throw new Mismatch('a lease', lease, hint);
    return lease;
  }

  /** Exactly `false`. Not asked again: who is refused stays refused. */
  async expectFalse(call: () => Promise<unknown>, hint: string): Promise<void> {
    const value = await this.read(call, () => true);
    if (value !== false) throw new Mismatch(false, value, hint);
  }

  async expectTrue(call: () => Promise<unknown>, hint: string): Promise<void> {
    const value = await this.read(call, () => true);
    if (value !== true) throw new Mismatch(true, value, hint);
  }
}

/** The checkpoints in the history, newest first; none where there is no history. */
export async function savesIn(
  store: CheckpointStore,
  id: string,
  options?: HistoryOptions,
): Promise<readonly Checkpoint[]> {
  const entries = (await store.history?.(id, options)) ?? [];
  return entries.map(({ checkpoint }) => checkpoint);
}

export function assertEqual(actual: unknown, expected: unknown, hint: string): void {
  if (!sameJson(expected, actual)) throw new Mismatch(expected, actual, hint);
}

export function isNothing(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

export function isNamedError(error: unknown): boolean {
  return error instanceof SDKError && NAMED_CODES.test(error.code);
}

export function fenceOf(lease: Lease | boolean): number | undefined {
  return typeof lease === 'object' ? lease.fence : undefined;
}

export interface Outcome {
  readonly value?: unknown;
  readonly error?: unknown;
}

/** A call that throws at once counts as one that rejects. */
export async function outcomeOf(call: () => Promise<unknown>): Promise<Outcome> {
  try {
    return { value: await call() };
  } catch (error) {
    return { error: error ?? new Error('It rejected with nothing.') };
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof SDKError ? error.code : undefined;
}

function describeOutcome({ value, error }: Outcome): unknown {
  if (error === undefined) return { resolves: value ?? null };
  return error instanceof SDKError ? error.code : { rejects: nameAndMessage(error) };
}

/** A call that is awaited later. Until then its rejection must not look like one that nobody handles, which ends a process. */
export function awaitedLater<Value>(call: Promise<Value>): Promise<Value> {
  call.catch(ignore);
  return call;
}

function ignore(): void {
  return undefined;
}

/** `TypeError: no such table`, whatever was thrown. */
export function nameAndMessage(error: unknown): string {
  const { name, message } = storedError(error);
  return `${name}: ${message}`;
}
