/** The parts of a store on one namespace, put together. */
import {
  parseCheckpoint,
  parseSessionRecord,
  type ApprovalStore,
  type Checkpoint,
  type PruneOptions,
  type PruneResult,
  type SessionRecord,
  type SessionStore,
} from '@lousho/contract';
import { CheckpointWrites } from './checkpoint-writes.ts';
import { kvApprovals } from './kv-approvals.ts';
import { KVCheckpoints } from './kv-checkpoints.ts';
import { KVClient } from './kv-client.ts';
import { KVHistory } from './kv-history.ts';
import { KVKeys } from './kv-keys.ts';
import { KVLeases } from './kv-leases.ts';
import { KVLists } from './kv-lists.ts';
import type { KVNamespaceLike } from './kv-namespace.ts';
import type { ResolvedKVOptions } from './kv-options.ts';
import { pruneKV } from './kv-prune.ts';
import { KVSessions } from './kv-sessions.ts';
import { LastSaves } from './last-saves.ts';
import { Operations } from './operations.ts';
import { RunQueue } from './run-queue.ts';
import { TranscriptRecords } from './transcript-records.ts';

export interface StoreParts {
  readonly checkpoints: KVCheckpoints;
  readonly approvals: ApprovalStore;
  readonly sessions: SessionStore;
  /** Absent where the namespace cannot be listed. */
  readonly prune: ((options: PruneOptions) => Promise<PruneResult>) | undefined;
  close(): Promise<void>;
}

export function storeParts(kv: KVNamespaceLike, options: ResolvedKVOptions): StoreParts {
  const { prefix, ttlSeconds, historyLimit, ports } = options;
  const { clock, ids } = ports;
  const operations = new Operations();
  const client = new KVClient(kv, clock, ids);
  const keys = new KVKeys(prefix);
  const records = new TranscriptRecords<Checkpoint>({
    ...{ record: 'checkpoint', client, clock, ttlSeconds },
    keyOf: (id) => keys.run(id),
    parse: parseCheckpoint,
  });
  const sessionRecords = new TranscriptRecords<SessionRecord>({
    ...{ record: 'session', client, clock, ttlSeconds },
    keyOf: (id) => keys.session(id),
    parse: parseSessionRecord,
  });
  const lastSaves = new LastSaves(clock);
  const leases = new KVLeases(client, keys, clock, lastSaves);
  const history = new KVHistory({ client, keys, records, historyLimit, ttlSeconds });
  const writes = new CheckpointWrites({
    client,
    keys,
    records,
    history,
    leases,
    lastSaves,
    historyLimit,
    ttlSeconds,
  });
  const queue = new RunQueue(client, (id, saves) => writes.save(id, saves));
  const lists = new KVLists(client, keys, records);
  const sessions = new KVSessions({ operations, client, keys, records: sessionRecords, ttlSeconds });
  const removeRun = (id: string): Promise<void> => queue.task(id, () => writes.remove(id, false));
  const prune = (asked: PruneOptions): Promise<PruneResult> =>
    operations.perform({ name: 'prune', kind: 'write' }, () =>
      pruneKV({ client, keys, clock, records, leases, sessions, removeRun }, asked),
    );
  return {
    checkpoints: new KVCheckpoints({ operations, records, queue, writes, history, leases, lastSaves, lists }),
    approvals: kvApprovals({ operations, client, keys, ttlSeconds }),
    sessions: sessions.asStore(),
    prune: client.canList ? prune : undefined,
    close: () => operations.close(),
  };
}
