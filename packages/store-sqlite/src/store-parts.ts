/** The parts of a store on one open database, put together. */
import type {
  ApprovalStore,
  FullCheckpointStore,
  Ports,
  PruneOptions,
  PruneResult,
  SessionStore,
} from '@lousho/contract';
import type { ResolvedStoreOptions } from '@lousho/contract';
import { CommitQueue } from './commit-queue.ts';
import { DatabaseReader } from './database-reader.ts';
import { EventLogs } from './event-logs.ts';
import { LogTables } from './log-tables.ts';
import { pruneAll, resolvePlan } from './prune-plan.ts';
import { keepRetention } from './retention.ts';
import { SqliteApprovals } from './sqlite-approvals.ts';
import { SqliteCheckpoints } from './sqlite-checkpoints.ts';
import type { Platform } from './open-database.ts';
import type { SqliteDatabase } from './sqlite-database.ts';
import { SqliteLeases } from './sqlite-leases.ts';
import { CheckpointLists } from './sqlite-lists.ts';
import { Pruning } from './sqlite-prune.ts';
import { SqliteSessions } from './sqlite-sessions.ts';

export interface StoreParts {
  readonly checkpoints: FullCheckpointStore;
  readonly approvals: ApprovalStore;
  readonly sessions: SessionStore & Required<Pick<SessionStore, 'list'>>;
  prune(options: PruneOptions): Promise<PruneResult>;
  close(): Promise<void>;
}

export interface PartsOptions extends ResolvedStoreOptions {
  readonly ports: Ports;
  readonly durable: 'power' | 'process' | 'memory';
  readonly warn: Platform['warn'];
}

export function storeParts(database: SqliteDatabase, options: PartsOptions): StoreParts {
  const { ports, historyLimit, historyMaxBytes, retentionMs, warn } = options;
  const { clock } = ports;
  const { connection } = database;
  const logs = new EventLogs(new LogTables(connection));
  const queue = new CommitQueue(database, clock, logs);
  const reader = new DatabaseReader(database, clock);
  const leases = new SqliteLeases(connection, queue, reader, ports);
  const pruning = new Pruning(connection, logs, leases, historyLimit);
  if (retentionMs !== undefined)
    queue.beforeBatch = keepRetention({ retentionMs, clock, queue, pruning, warn });

  let closing: Promise<void> | undefined;
  async function closeOnce(): Promise<void> {
    database.refuseReads();
    await queue.close();
    leases.close();
    database.close();
  }
  const wholeStore = {
    async prune(asked: PruneOptions): Promise<PruneResult> {
      const isDryRun = asked.dryRun === true;
      const result = await pruneAll(pruning, resolvePlan(asked, clock), isDryRun, (write) =>
        queue.add(write),
      );
      if (!isDryRun && connection.open) database.truncateLog();
      return result;
    },
    close: (): Promise<void> => (closing ??= closeOnce()),
  };
  return {
    checkpoints: new SqliteCheckpoints({
      claims: {
        leases: 'atomic',
        history: true,
        list: true,
        durable: options.durable,
        consistency: 'strong',
      },
      ...{ historyLimit, historyMaxBytes, queue, reader, logs, leases },
      lists: new CheckpointLists(connection, reader, logs),
      ...wholeStore,
    }),
    approvals: new SqliteApprovals(connection, queue, reader),
    sessions: new SqliteSessions(queue, reader, logs),
    ...wholeStore,
  };
}
