/** What `lousho.config.ts` exports. */
import type { AgentStore } from '@lousho/contract';
import type { Agent } from '@lousho/core';

export interface LoushoConfig {
  /** A store, or where it is, as `--store` takes it, relative to the file. Only of the latter is a store that is missing never created. */
  readonly store?: AgentStore | string | undefined;
  /** Who continues runs: for `resume`, `recover`, `fork` and approvals. The names are for `--agent`. */
  readonly agents?: { readonly [name: string]: Agent } | undefined;
}

/** Gives back what it gets, typed. */
export function defineConfig(config: LoushoConfig): LoushoConfig {
  return config;
}
