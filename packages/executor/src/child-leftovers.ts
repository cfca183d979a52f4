/** The checkpoint of a sub-agent goes once the result of its call is recorded: before that it is the only copy of what the sub-agent did. */
import { lastStep, type ToolCallPart } from '@lousho/contract';
import type { Run } from './run.ts';
import { isTaskTool } from './task-tool.ts';

export function isTaskCall(run: Run, call: Pick<ToolCallPart, 'toolName'>): boolean {
  return isTaskTool(run.agent.tools.get(call.toolName));
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

/** A process died between a result and the end of its sub-agent's checkpoint: the last step names it. */
export async function removeRecordedChildren(run: Run): Promise<void> {
  const { messages, settledResults } = run.checkpoint;
  const step = lastStep(messages);
  if (step === undefined) return;
  const recorded = step.calls.flatMap((call, index) => {
    const hasResult =
      index < step.answered || settledResults.some(({ toolCallId }) => toolCallId === call.toolCallId);
    return hasResult && isTaskCall(run, call) ? [run.childId(index)] : [];
  });
  await removeChildren(run, recorded);
}
