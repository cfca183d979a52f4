/** Removing a run with all that hangs on it: its sub-agents, what was said in their tasks, its approvals. Its caller keeps others off it. */
import {
  classifyCheckpointId,
  isSDKError,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointStore,
  type Message,
  type SessionStore,
} from '@lousho/contract';
import { loadCheckpoint, openChildIds, taskRecordsIn } from '@lousho/executor/wiring';

export interface DropParts {
  readonly store: CheckpointStore;
  readonly approvals: ApprovalStore | undefined;
  readonly taskRecords: SessionStore | undefined;
}

export interface DoomedRun {
  /** Of its checkpoint. */
  readonly id: string;
  readonly sessionId: string;
  /** The messages that nothing else keeps. */
  readonly said: (stored: Checkpoint) => readonly Message[];
}

export async function dropRun(parts: DropParts, { id, sessionId, said }: DoomedRun): Promise<void> {
  const { store, approvals } = parts;
  const stored = await readRun(store, id);
  // 1. Its sub-agents, innermost first. Crash in between: the run is still there, and still names the others.
  for (const childId of await childrenOf(store, id, stored)) await store.delete(childId);
  if (stored !== null && stored !== 'damaged') await forgetTasks(parts, said(stored));
  // 2. The run. Crash behind it: its approvals are orphans, which nobody can decide and no list shows.
  await store.delete(id);
  // 3. Its approvals.
  for (const record of (await approvals?.list({ sessionId })) ?? [])
    if (record.checkpointId === id) await approvals?.delete(record.id);
}

export async function forgetTasks(
  { taskRecords }: Pick<DropParts, 'taskRecords'>,
  messages: readonly Message[],
): Promise<void> {
  for (const id of taskRecordsIn(messages)) await taskRecords?.delete(id);
}

export async function readRun(store: CheckpointStore, id: string): Promise<Checkpoint | 'damaged' | null> {
  try {
    return await loadCheckpoint(store, id);
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT')) return 'damaged';
    throw error;
  }
}

/** Sub-agents that its open calls had begun, those of their own in front of them. */
async function childrenOf(
  store: CheckpointStore,
  id: string,
  stored: Checkpoint | 'damaged' | null,
): Promise<readonly string[]> {
  if (stored === null) return [];
  if (stored === 'damaged') return listedChildren(store, id);
  const ids: string[] = [];
  for (const childId of openChildIds(id, stored))
    ids.push(...(await childrenOf(store, childId, await readRun(store, childId))), childId);
  return ids;
}

/** The same by their ids, as far as the store lists them: a damaged run names nothing. */
async function listedChildren(store: CheckpointStore, leadId: string): Promise<readonly string[]> {
  const listed = (await (store.listHeaders?.() ?? store.list?.())) ?? [];
  return listed
    .map((entry) => entry.sessionId)
    .filter((id) => {
      const named = classifyCheckpointId(id);
      return named.kind === 'child' && named.leadId === leadId;
    })
    .sort((a, b) => b.length - a.length);
}
