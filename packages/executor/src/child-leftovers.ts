/** The checkpoint of a sub-agent goes once the result of its call is recorded: before that it is the only copy of what the sub-agent did. */
import {
  childCheckpointId,
  classifyCheckpointId,
  lastStep,
  type Checkpoint,
  type CheckpointStore,
  type ToolCallPart,
} from '@lousho/contract';
import { loadOrDamaged } from './load-checkpoint.ts';
import type { Run } from './run.ts';
import { isAt, openTasks, taskChildId } from './task-ledger.ts';
import { TASK, isTaskTool } from './task-tool.ts';

export function isTaskCall(run: Run, call: Pick<ToolCallPart, 'toolName'>): boolean {
  return isTaskTool(run.agent.tools.get(call.toolName));
}

/**
 * Where the sub-agents of a stored run may be, those of their own in front of them: removed in this order, whatever is left still names the
 * others.
 */
export async function childIdsBelow(
  store: CheckpointStore,
  checkpointId: string,
  stored: Checkpoint | 'damaged' | null,
): Promise<readonly string[]> {
  if (stored === null) return [];
  if (stored === 'damaged') return listedChildren(store, checkpointId);
  const ids: string[] = [];
  for (const childId of childIdsOf(checkpointId, stored))
    ids.push(...(await childIdsBelow(store, childId, await loadOrDamaged(store, childId))), childId);
  return ids;
}

/** Those of its last step, also when their results are recorded: a process may have died before it removed them. */
function childIdsOf(checkpointId: string, checkpoint: Checkpoint): ReadonlySet<string> {
  const { runId, stepIndex: step, messages, backgroundTasks = [] } = checkpoint;
  const calls = lastStep(messages)?.calls ?? [];
  return new Set([
    ...calls.flatMap((call, index) =>
      call.toolName === TASK ? [childCheckpointId(checkpointId, { runId, step, index })] : [],
    ),
    ...backgroundTasks.map((task) => taskChildId(checkpointId, checkpoint, task)),
  ]);
}

/** By their ids, as far as the store lists them: a damaged run names nothing. */
async function listedChildren(store: CheckpointStore, leadId: string): Promise<readonly string[]> {
  const listed = (await (store.listHeaders?.() ?? store.list?.())) ?? [];
  return listed
    .map((entry) => entry.sessionId)
    .filter((id) => classifyCheckpointId(id).kind === 'child' && id.startsWith(`${leadId}.sub-`))
    .sort((a, b) => b.length - a.length);
}

/** Never rejects: what the store does not delete now is tried again when the run ends, and goes with the run at the latest. */
export async function removeChildren(run: Run, childIds: Iterable<string>): Promise<void> {
  const { store, leftovers } = run;
  for (const childId of childIds) {
    try {
      // One that was stopped, or that a person kept waiting, did not remove its own.
      const below = await childIdsBelow(store, childId, await loadOrDamaged(store, childId));
      for (const id of [...below, childId]) await store.delete(id);
      leftovers.delete(childId);
    } catch {
      // The run itself is stored and goes on: a leftover that nobody reads is no reason to fail.
      leftovers.add(childId);
    }
  }
}

/** A process died between a result and the end of its sub-agent's checkpoint: the last step names it, or the list of tasks. */
export async function removeRecordedChildren(run: Run): Promise<void> {
  const { messages, settledResults, stepIndex, backgroundTasks = [] } = run.checkpoint;
  const isOpen = (index: number): boolean =>
    openTasks(run.checkpoint).some((task) => isAt(task, { step: stepIndex, index }));
  const ended = backgroundTasks
    .filter((task) => task.isOver)
    .map((task) => run.childId(task.index, task.step));
  await removeChildren(run, ended);
  const step = lastStep(messages);
  if (step === undefined) return;
  const recorded = step.calls.flatMap((call, index) => {
    const hasResult =
      index < step.answered || settledResults.some(({ toolCallId }) => toolCallId === call.toolCallId);
    // By its name: who answers now, after a handoff, may have no sub-agents.
    return hasResult && call.toolName === TASK && !isOpen(index) ? [run.childId(index)] : [];
  });
  await removeChildren(run, recorded);
}
