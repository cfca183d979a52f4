/** The checkpoint of a sub-agent goes once the result of its call is recorded: before that it is the only copy of what the sub-agent did. */
import { childCheckpointId, lastStep, type Checkpoint, type ToolCallPart } from '@lousho/contract';
import { openCalls } from './next-action.ts';
import type { Run } from './run.ts';
import { isAt, openTasks, taskChildId } from './task-ledger.ts';
import { TASK, isTaskTool } from './task-tool.ts';

export function isTaskCall(run: Run, call: Pick<ToolCallPart, 'toolName'>): boolean {
  return isTaskTool(run.agent.tools.get(call.toolName));
}

/** Where the sub-agents of a stored run may be that its open calls had begun, or that work in the background. */
export function openChildIds(checkpointId: string, checkpoint: Checkpoint): readonly string[] {
  const { runId, stepIndex: step } = checkpoint;
  return openCalls(checkpoint)
    .filter(({ call }) => call.toolName === TASK)
    .map(({ index }) => childCheckpointId(checkpointId, { runId, step, index }))
    .concat(openTasks(checkpoint).map((task) => taskChildId(checkpointId, checkpoint, task)));
}

/** Never rejects: what the store does not delete now is tried again when the run ends, and goes with the run at the latest. */
export async function removeChildren(run: Run, childIds: Iterable<string>): Promise<void> {
  for (const childId of childIds) {
    try {
      await run.store.delete(childId);
      run.leftovers.delete(childId);
    } catch {
      // The run itself is stored and goes on: a leftover that nobody reads is no reason to fail.
      run.leftovers.add(childId);
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
