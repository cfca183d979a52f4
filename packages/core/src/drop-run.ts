/** Removing a run with all that hangs on it: its sub-agents, what was said in their tasks, its approvals. Its caller keeps others off it. */
import {
  type ApprovalStore,
  type Checkpoint,
  type CheckpointStore,
  type Message,
  type SessionStore,
} from '@lousho/contract';
import { childIdsBelow, loadOrDamaged, taskRecordsIn } from '@lousho/executor/wiring';

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
  const stored = await loadOrDamaged(store, id);
  // 1. Its sub-agents, innermost first. Crash in between: the run is still there, and still names the others.
  for (const childId of await childIdsBelow(store, id, stored)) await store.delete(childId);
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
