/** What a prune is asked for, and what the keys of the namespace say about it. */
import { ConfigurationError, type CheckpointStatus, type Clock, type PruneOptions } from '@lousho/contract';
import type { KVClient } from './kv-client.ts';
import type { KVKeys } from './kv-keys.ts';

export interface PrunePlan {
  readonly statuses: readonly CheckpointStatus[];
  /** A time that cannot be read is never old: better kept than lost. */
  isOld(time: unknown): boolean;
}

/** @throws LOUSHO_CONFIG_INVALID */
export function resolvePlan({ olderThanMs, statuses = ['finished'] }: PruneOptions, clock: Clock): PrunePlan {
  if (!(olderThanMs >= 0)) {
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'olderThanMs',
      got: olderThanMs,
      want: 'a number of milliseconds, 0 or more',
    });
  }
  const cutoffMs = clock.wallMs() - olderThanMs;
  return {
    statuses,
    isOld: (time) => (typeof time === 'number' ? time : Date.parse(String(time))) <= cutoffMs,
  };
}

/** What the keys say. */
export interface Listed {
  readonly runs: ReadonlyMap<string, unknown>;
  readonly entries: ReadonlyMap<string, { readonly count: number; readonly newest: unknown }>;
  readonly parts: ReadonlyMap<string, readonly { readonly name: string; readonly writtenAtMs: unknown }[]>;
  readonly leased: ReadonlySet<string>;
  readonly approvals: ReadonlyMap<string, unknown>;
  readonly sessions: ReadonlyMap<string, unknown>;
}

export async function listAll(client: KVClient, keys: KVKeys): Promise<Listed> {
  const runs = new Map<string, unknown>();
  const entries = new Map<string, { count: number; newest: unknown }>();
  const parts = new Map<string, { name: string; writtenAtMs: unknown }[]>();
  const leased = new Set<string>();
  const approvals = new Map<string, unknown>();
  const sessions = new Map<string, unknown>();
  for (const { name, metadata } of await client.keys(keys.prefix)) {
    const key = keys.parse(name);
    const time = (metadata as { readonly t?: unknown } | null | undefined)?.t;
    if (key.kind === 'run') runs.set(key.id, metadata);
    if (key.kind === 'lease') leased.add(key.id);
    if (key.kind === 'approval') approvals.set(key.id, metadata);
    if (key.kind === 'session') sessions.set(key.id, time);
    if (key.kind === 'chunk')
      parts.set(key.id, [...(parts.get(key.id) ?? []), { name: key.name, writtenAtMs: time }]);
    if (key.kind !== 'entry') continue;
    const before = entries.get(key.id);
    const newest = before === undefined || String(time) > String(before.newest) ? time : before.newest;
    entries.set(key.id, { count: (before?.count ?? 0) + 1, newest });
  }
  return { runs, entries, parts, leased, approvals, sessions };
}
