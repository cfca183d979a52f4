/** Calls inside a sub-agent that wait for a person, as the stored runs below a `task` call show them. */
import type {
  Checkpoint,
  CheckpointApproval,
  CheckpointStore,
  JsonValue,
  ToolCallPart,
} from '@lousho/contract';
import { loadCheckpoint } from './load-checkpoint.ts';
import { openCalls, undecidedApprovals } from './next-action.ts';

export interface InnerPause {
  /** The direct child in which, or below which, it is. */
  readonly childId: string;
  /** Names of the sub-agents on the way to the call, this child's first. */
  readonly path: readonly string[];
  readonly approval: CheckpointApproval;
  readonly call: ToolCallPart;
  /** What the person sees. */
  readonly args: JsonValue;
}

/** In call order. An approval has one and the same id on every level. */
export async function innerPauses(store: CheckpointStore, childId: string): Promise<readonly InnerPause[]> {
  const child = await loadCheckpoint(store, childId);
  if (child === null) throw new Error(`Invariant: the sub-agent ${childId} waits and is not stored`);
  const pauses: InnerPause[] = [];
  for (const approval of undecidedApprovals(child)) {
    const deeper = approval.childId === undefined ? undefined : await innerPauses(store, approval.childId);
    const pause =
      deeper === undefined
        ? ownPause(child, approval)
        : deeper.find((one) => one.approval.id === approval.id);
    if (pause === undefined) throw new Error(`Invariant: nothing waits on approval ${approval.id}`);
    pauses.push({ ...pause, childId, approval, path: [child.agentName, ...pause.path] });
  }
  return pauses;
}

function ownPause(
  child: Checkpoint,
  approval: CheckpointApproval,
): Pick<InnerPause, 'call' | 'args' | 'path'> | undefined {
  const open = openCalls(child).find(({ call }) => call.toolCallId === approval.toolCallId);
  return open && { call: open.call, args: approval.args ?? open.call.args, path: [] };
}
