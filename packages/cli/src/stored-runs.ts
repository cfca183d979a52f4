/** The runs of a store as an operator sees them: by the ids that callers use, without what sub-agents and bookkeeping keep beside them. */
import {
  checkpointHeader,
  classifyCheckpointId,
  type CheckpointHeader,
  type CheckpointHeaderEntry,
  type CheckpointStatus,
  type CheckpointStore,
  type PendingKind,
  type StoredError,
} from '@lousho/contract';
import { CliError } from './cli-error.ts';

export interface StoredRun {
  /** What commands take: the id of the run, or of the session whose turn it is. */
  readonly id: string;
  readonly kind: PendingKind;
  readonly checkpointId: string;
  readonly status: CheckpointStatus;
  /** `null`: the record is damaged, and `error` says how. */
  readonly header: CheckpointHeader | null;
  readonly error?: StoredError;
}

/** Oldest save first. @throws CliError LOUSHO_CLI_UNSUPPORTED; what the store throws */
export async function storedRuns(
  store: CheckpointStore,
  status?: readonly CheckpointStatus[],
): Promise<readonly StoredRun[]> {
  const entries = await headersOf(store, status);
  return entries.flatMap(({ sessionId: checkpointId, ...entry }) => {
    const name = nameOf(checkpointId);
    return name === undefined ? [] : [{ ...name, checkpointId, ...entry }];
  });
}

export const unfinished: readonly CheckpointStatus[] = ['in-progress', 'awaiting-approval'];

/** `undefined` for what is no run of its own. */
function nameOf(checkpointId: string): Pick<StoredRun, 'id' | 'kind'> | undefined {
  const classified = classifyCheckpointId(checkpointId);
  if (classified.kind === 'run') return { id: checkpointId, kind: 'run' };
  return classified.kind === 'session' ? { id: classified.sessionId, kind: 'session' } : undefined;
}

async function headersOf(
  store: CheckpointStore,
  status: readonly CheckpointStatus[] | undefined,
): Promise<readonly CheckpointHeaderEntry[]> {
  const options = status === undefined ? {} : { status };
  if (store.listHeaders !== undefined) return store.listHeaders(options);
  if (store.list === undefined)
    throw new CliError('LOUSHO_CLI_UNSUPPORTED', 'The store cannot list its runs.', {
      hint: 'Commands that take the id of a run work.',
    });
  const entries = await store.list(options);
  return entries.map(({ checkpoint, ...entry }) => ({
    ...entry,
    header: checkpoint === null ? null : checkpointHeader(checkpoint),
  }));
}
