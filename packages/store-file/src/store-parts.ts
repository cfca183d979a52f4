/** The parts of a store on one folder, put together. */
import path from 'node:path';
import {
  classifyCheckpointId,
  parseCheckpoint,
  type ApprovalStore,
  type FullCheckpointStore,
  type Ports,
  type PruneOptions,
  type PruneResult,
  type ResolvedStoreOptions,
  type SessionStore,
} from '@lousho/contract';
import { LeaseJudge, LiveOwners } from '@lousho/contract/node';
import { Descriptors } from './descriptors.ts';
import { Disk } from './disk.ts';
import { EventLogs } from './event-logs.ts';
import { FenceFloor } from './fence-floor.ts';
import { FileApprovals } from './file-approvals.ts';
import { FileCheckpoints } from './file-checkpoints.ts';
import { FileLeases } from './file-leases.ts';
import { CheckpointLists } from './file-lists.ts';
import { Pruning } from './file-prune.ts';
import { FileSessions, sessionKind } from './file-sessions.ts';
import type { FileSystem } from './file-system.ts';
import { Generations } from './generations.ts';
import { KeyedQueue } from './keyed-queue.ts';
import { LeaseFiles } from './lease-files.ts';
import type { LogKind } from './log-reader.ts';
import { sharedFrom } from './message-origins.ts';
import { runNumbering, sessionNumbering } from './numbering.ts';
import { Operations } from './operations.ts';
import { resolvePlan } from './prune-decisions.ts';
import { withQuickCalls, type ThreadCalls } from './quick-calls.ts';
import { keepRetention } from './retention.ts';
import { RunRemoval } from './run-removal.ts';
import { StoreFormat } from './store-format.ts';
import { StorePlace } from './store-place.ts';
import { UnfinishedRuns } from './unfinished-runs.ts';

export interface StoreParts {
  readonly checkpoints: FullCheckpointStore;
  readonly approvals: ApprovalStore;
  readonly sessions: SessionStore & Required<Pick<SessionStore, 'list'>>;
  prune(options: PruneOptions): Promise<PruneResult>;
  close(): Promise<void>;
}

export interface PartsOptions extends ResolvedStoreOptions {
  /** Absolute. */
  readonly folder: string;
  readonly durability: 'power' | 'process';
  readonly ports: Ports;
  readonly fs: FileSystem;
  /** Calls that may be made on the thread. `undefined`: none. */
  readonly thread?: ThreadCalls | undefined;
  /** Of the file system that a folder lies on; `undefined` for a local disk. */
  readonly networkKindOf: (folder: string) => string | undefined;
  readonly warn: (message: string) => void;
}

export function storeParts(options: PartsOptions): StoreParts {
  const { folder, durability, ports, thread, historyLimit, historyMaxBytes, retentionMs, warn } = options;
  const { clock, ids } = ports;
  const [runsRoot, approvalsRoot, sessionsRoot] = ['runs', 'approvals', 'sessions'].map((name) =>
    path.join(folder, name),
  ) as [string, string, string];
  const writer = ids.random().slice(0, 8);
  const quickCalls = {
    isOnLocalDisk: (): boolean => format.isOnLocalDisk,
    isAlone: (): boolean => operations.isAlone,
  };
  const fs =
    thread === undefined ? options.fs : withQuickCalls({ fs: options.fs, thread, clock, ...quickCalls });
  const disk = new Disk(fs, durability === 'power', ids);
  const descriptors = new Descriptors(disk);
  const place = new StorePlace(disk, folder);
  const operations = new Operations(place);
  const tempFolders = [folder, runsRoot, approvalsRoot, sessionsRoot];
  const format = new StoreFormat({
    disk,
    folder,
    place,
    tempFolders,
    warn,
    networkKindOf: options.networkKindOf,
  });
  const [logQueue, leaseQueue] = [new KeyedQueue(), new KeyedQueue()];

  const sessionGenerations = new Generations(disk, descriptors, sessionKind);
  const sessionLogs = new EventLogs({
    root: sessionsRoot,
    place,
    generations: sessionGenerations,
    numbering: sessionNumbering,
    // Its revision is not known, so nobody can have expected it.
    heals: false,
    unfinished: undefined,
    storedBy: () => undefined,
  });
  const sessions = new FileSessions({
    ...{
      root: sessionsRoot,
      place,
      logs: sessionLogs,
      generations: sessionGenerations,
      operations,
      format,
      writer,
    },
    queue: new KeyedQueue(),
  });

  const runKind: LogKind = {
    kind: 'run',
    record: 'checkpoint',
    keptEntries: Math.max(1, historyLimit),
    keptBytes: historyMaxBytes,
    parse: parseCheckpoint,
  };
  const floor = new FenceFloor(disk, folder);
  const leaseFiles = new LeaseFiles(disk, clock, floor);
  const generations = new Generations(disk, descriptors, runKind);
  const unfinished = new UnfinishedRuns(disk, floor, folder);
  const logs = new EventLogs({
    root: runsRoot,
    place,
    generations,
    numbering: runNumbering(leaseFiles, generations),
    heals: true,
    unfinished,
    storedBy(id, state) {
      const kind = classifyCheckpointId(id);
      return kind.kind === 'session' ? sharedFrom(sessionLogs.known(kind.sessionId), state) : undefined;
    },
  });
  const liveOwners = new LiveOwners(folder);
  const judge = new LeaseJudge(ports, liveOwners);
  const leases = new FileLeases({
    ...{ clock, place, judge, liveOwners, logs, generations, logQueue, leaseQueue },
    files: leaseFiles,
  });
  const removal = new RunRemoval({
    ...{ disk, place, floor, logs, generations, leases, unfinished, logQueue, leaseQueue },
  });
  const lists = new CheckpointLists({
    disk,
    place,
    root: runsRoot,
    generations,
    leases: leaseFiles,
    unfinished,
  });
  const approvals = new FileApprovals({
    ...{ disk, place, root: approvalsRoot, operations, format },
    queue: new KeyedQueue(),
  });
  const pruning = new Pruning({ clock, historyLimit, logs, leases, lists, removal, approvals, sessions });

  let closing: Promise<void> | undefined;
  async function closeOnce(): Promise<void> {
    await operations.close();
    leases.close();
    await descriptors.closeAll();
  }
  const wholeStore = {
    prune: (asked: PruneOptions): Promise<PruneResult> =>
      operations.perform({ name: 'prune', kind: 'write' }, async () => {
        const plan = resolvePlan(asked, clock);
        await format.assertReadable();
        return pruning.prune(plan, asked.dryRun === true);
      }),
    close: (): Promise<void> => (closing ??= closeOnce()),
  };
  const checkpoints = new FileCheckpoints({
    claims: { leases: 'atomic', history: true, list: true, durable: durability, consistency: 'strong' },
    ...{ historyLimit, operations, format, logs, generations, leases, logQueue, leaseQueue, removal, lists },
    ...{ writer, ...wholeStore },
    afterSave: retentionMs === undefined ? undefined : keepRetention({ retentionMs, clock, pruning, warn }),
  });
  return { checkpoints, approvals, sessions, ...wholeStore };
}
