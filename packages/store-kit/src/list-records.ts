/** What there is to copy or to export: ids alone, so that no transcript is held longer than its own turn. */
import {
  classifyCheckpointId,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointHeader,
  type CheckpointHeaderEntry,
  type CheckpointListEntry,
  type CheckpointStatus,
  type CheckpointStore,
  type SessionStore,
} from '@lousho/contract';
import { invalidStore } from './require-store.ts';

export interface ListedRun {
  readonly id: string;
  readonly status: CheckpointStatus;
  /** Of the approvals that it waits for. */
  readonly approvalIds: readonly string[];
}

export async function runsOf(checkpoints: CheckpointStore | undefined): Promise<readonly ListedRun[]> {
  if (checkpoints === undefined) return [];
  if (checkpoints.listHeaders !== undefined)
    return leadsFirst((await checkpoints.listHeaders()).map((entry) => listedRun(entry, entry.header)));
  if (checkpoints.list === undefined) throw invalidStore('from', 'a store whose runs can be listed');
  return leadsFirst((await checkpoints.list()).map((entry) => listedRun(entry, entry.checkpoint)));
}

/** What becomes of a lead decides about its sub-agents. */
function leadsFirst(runs: readonly ListedRun[]): readonly ListedRun[] {
  const isChild = ({ id }: ListedRun): boolean => classifyCheckpointId(id).kind === 'child';
  return [...runs.filter((run) => !isChild(run)), ...runs.filter(isChild)];
}

function listedRun(
  { sessionId: id, status }: CheckpointListEntry | CheckpointHeaderEntry,
  run: Checkpoint | CheckpointHeader | null,
): ListedRun {
  return { id, status, approvalIds: run?.status === 'awaiting-approval' ? run.approvalIds : [] };
}

/** A list leaves out what cannot be read (A7). The runs know what they wait for, so that is asked for too, and its copy says what is wrong. */
export async function approvalsOf(
  approvals: ApprovalStore | undefined,
  runs: readonly ListedRun[],
): Promise<readonly string[]> {
  if (approvals === undefined) return [];
  const listed = (await approvals.list()).map(({ id }) => id);
  return [...new Set([...listed, ...runs.flatMap(({ approvalIds }) => approvalIds)])];
}

export async function sessionsOf(sessions: SessionStore | undefined): Promise<readonly string[]> {
  if (sessions === undefined) return [];
  if (sessions.list === undefined) throw invalidStore('from', 'a store whose sessions can be listed');
  return sessions.list();
}
