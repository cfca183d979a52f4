/** The options of `recover()`, every default filled in, and whether the store is one for it. */
import { type CheckpointStore, type StoreClaims, type OptionNames } from '@lousho/contract';
import { refuseOption } from '@lousho/executor/wiring';
import { requireOptions } from './require-options.ts';
import type { RecoverOptions } from './agent.ts';
import { requireListable } from './pending-runs.ts';

export interface ResolvedRecoverOptions {
  readonly store: CheckpointStore;
  readonly intervalMs: number;
  readonly concurrency: number;
  readonly maxAttempts: number;
  readonly minRestMs: number;
  readonly once: boolean;
  readonly signal: AbortSignal | undefined;
  readonly onRecovered: NonNullable<RecoverOptions['onRecovered']>;
  readonly onError: NonNullable<RecoverOptions['onError']>;
}

const everyOption: OptionNames<RecoverOptions> = {
  intervalMs: true,
  concurrency: true,
  maxAttempts: true,
  eventualConsistency: true,
  once: true,
  signal: true,
  onRecovered: true,
  onError: true,
};

/** Workers KV shows a write everywhere after a minute; half a minute more for those that take longer. */
const EVENTUAL_REST_MS = 90_000;

/** @throws synchronously LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE, LOUSHO_CONFIG_INVALID */
export function resolveRecoverOptions(
  checkpoints: CheckpointStore | undefined,
  options: RecoverOptions,
): ResolvedRecoverOptions {
  const store = requireListable(checkpoints, 'agent.recover()');
  requireOptions(options, everyOption);
  const {
    intervalMs = 30_000,
    concurrency = 4,
    maxAttempts = 10,
    eventualConsistency = false,
    once = false,
    signal,
    onRecovered = ignore,
    onError = ignore,
  } = options;
  if (typeof intervalMs !== 'number' || !(intervalMs >= 1 && intervalMs < Infinity))
    refuseOption('intervalMs', intervalMs, 'a number, 1 or more');
  for (const [option, count] of Object.entries({ concurrency, maxAttempts }))
    if (!Number.isSafeInteger(count) || count < 1) refuseOption(option, count, 'a whole number, 1 or more');
  if (typeof once !== 'boolean') refuseOption('once', once, 'true or false');
  for (const [option, callback] of Object.entries({ onRecovered, onError }) as [string, unknown][])
    if (typeof callback !== 'function') refuseOption(option, callback, 'a function');
  const isEventual = store.claims?.consistency === 'eventual';
  if (isEventual && eventualConsistency !== true)
    refuseOption(
      'eventualConsistency',
      eventualConsistency,
      'true: this store shows what was saved only after a while, so a run may be recovered that is long over',
    );
  warnOfLeases(store);
  const minRestMs = isEventual ? EVENTUAL_REST_MS : 0;
  return { store, intervalMs, concurrency, maxAttempts, minRestMs, once, signal, onRecovered, onError };
}

const warned = new WeakSet<CheckpointStore>();

/** Once for each store: the set-up may be right, with one process. */
function warnOfLeases(store: CheckpointStore): void {
  const leases = leasesOf(store);
  if (leases === 'atomic' || warned.has(store)) return;
  warned.add(store);
  console.warn(
    leases === 'none'
      ? 'lousho: this store has no leases, so nothing keeps two processes off one run. Call agent.recover() in one process only.'
      : 'lousho: the leases of this store are best effort: two processes may recover one run at one moment, and run its calls twice.',
  );
}

function leasesOf(store: CheckpointStore): StoreClaims['leases'] {
  return store.claims?.leases ?? (store.acquireLease === undefined ? 'none' : 'atomic');
}

function ignore(): void {
  // Nobody asked to hear of it; `agent.pending()` shows what is left.
}
