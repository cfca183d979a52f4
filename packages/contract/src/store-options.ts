/** The options that every bundled store takes, validated once. */
import { ConfigurationError } from './errors.ts';
import type { OptionNames } from './known-options.ts';
import type { StoreOptions } from './store.ts';

export interface ResolvedStoreOptions {
  readonly historyLimit: number;
  readonly historyMaxBytes: number;
  readonly retentionMs: number | undefined;
}

/** For `requireKnownOptions`, with the options that a store has besides. */
export const storeOptionNames: OptionNames<StoreOptions> = {
  historyLimit: true,
  historyMaxBytes: true,
  retentionMs: true,
  ports: true,
};

/** Enough to fork a run of the default length at every step, with room for its tool results. */
const DEFAULT_HISTORY_LIMIT = 50;
const DEFAULT_HISTORY_MAX_BYTES = 64 * 1024 * 1024;

/** @throws synchronously LOUSHO_CONFIG_INVALID naming the option. */
export function resolveStoreOptions(options: StoreOptions): ResolvedStoreOptions {
  const {
    historyLimit = DEFAULT_HISTORY_LIMIT,
    historyMaxBytes = DEFAULT_HISTORY_MAX_BYTES,
    retentionMs,
  } = options;
  requireCount('historyLimit', historyLimit);
  requireCount('historyMaxBytes', historyMaxBytes);
  if (retentionMs !== undefined) requireCount('retentionMs', retentionMs);
  return { historyLimit, historyMaxBytes, retentionMs };
}

function requireCount(option: string, got: number): void {
  if (!Number.isSafeInteger(got) || got < 0) {
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want: 'a whole number, 0 or more' });
  }
}
