/** What waits for a person: from the inbox, and only what a run really waits for. */
import {
  ownCalls,
  type AgentStore,
  type ApprovalRecord,
  type ApprovalRequest,
  type Checkpoint,
  type CheckpointApproval,
} from '@lousho/contract';
import { storedRuns } from './stored-runs.ts';

/** Oldest first. Records that no run waits for are left out; the checkpoint decides. @throws what the store throws */
export async function waitingApprovals(store: AgentStore): Promise<readonly ApprovalRecord[]> {
  const records = (await store.approvals?.list()) ?? [];
  const { checkpoints } = store;
  if (checkpoints === undefined) return records;
  const paused = await storedRuns(checkpoints, ['awaiting-approval']);
  const waiting = new Set(
    paused.flatMap(({ header }) => (header?.status === 'awaiting-approval' ? header.approvalIds : [])),
  );
  return records.filter(({ id, snapshot }) => snapshot !== undefined || waiting.has(id));
}

export type WaitingApproval = Pick<
  ApprovalRequest,
  'id' | 'kind' | 'toolName' | 'args' | 'question' | 'subagentPath' | 'createdAt' | 'expiresAt'
>;

/** What one run waits for, in call order. The inbox knows calls inside of sub-agents; the run knows its own. */
export async function approvalsOf(
  store: AgentStore,
  checkpoint: Checkpoint,
): Promise<readonly WaitingApproval[]> {
  if (checkpoint.status !== 'awaiting-approval') return [];
  const open = checkpoint.approvals.filter(({ decision }) => decision === undefined);
  return Promise.all(
    open.map(
      async (approval) => (await store.approvals?.load(approval.id)) ?? ownApproval(checkpoint, approval),
    ),
  );
}

function ownApproval(checkpoint: Checkpoint, approval: CheckpointApproval): WaitingApproval {
  const { id, kind, toolCallId, createdAt, expiresAt, question } = approval;
  const calls = checkpoint.messages.flatMap((message) =>
    message.role === 'assistant' ? ownCalls(message) : [],
  );
  const call = calls.findLast((one) => one.toolCallId === toolCallId);
  return {
    ...{
      id,
      kind,
      createdAt,
      toolName: call?.toolName ?? 'unknown',
      args: approval.args ?? call?.args ?? {},
    },
    ...(expiresAt === undefined ? undefined : { expiresAt }),
    ...(question === undefined ? undefined : { question }),
  };
}
