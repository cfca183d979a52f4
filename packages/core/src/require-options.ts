/** The options of a call, looked at by name: what is mistyped would be left out in silence. */
import { requireKnownOptions, type OptionNames } from '@lousho/contract';
import { requireObject } from '@lousho/executor/wiring';
import type { AbortOptions } from './agent.ts';

/** @throws synchronously LOUSHO_CONFIG_INVALID */
export function requireOptions<Options extends object>(
  options: Options,
  names: OptionNames<Options>,
  want?: string,
): void {
  requireObject('options', options, want);
  requireKnownOptions('', options, names);
}

/** @throws synchronously LOUSHO_CONFIG_INVALID */
export function requireAbortOptions(options: AbortOptions): void {
  requireOptions(options, { signal: true });
}
