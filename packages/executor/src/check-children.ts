/** The sub-agents below a run that is resumed or decided: each is checked as the run itself is, before anything of it changes. */
import {
  SDKError,
  childCheckpointId,
  type Checkpoint,
  type CheckpointApproval,
  type CheckpointStore,
  type ToolCallPart,
} from '@lousho/contract';
import { refusalsOf, type ResolvedDriftPolicy } from './agent-drift.ts';
import { checkAgent } from './check-agent.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import { openCalls } from './next-action.ts';
import type { ResolvedAgent } from './resolved-agent.ts';
import { savedContext } from './run-context.ts';
import { givenTask, openTasks, taskChildId } from './task-ledger.ts';
import { isTaskTool } from './task-tool.ts';

export interface StoredChild {
  readonly id: string;
  readonly checkpoint: Checkpoint;
  /** Who goes on with it. Of one that is finished, the lead. */
  readonly agent: ResolvedAgent;
  readonly children: readonly StoredChild[];
}
export interface Level {
  readonly checkpointId: string;
  readonly stored: Checkpoint;
  readonly agent: ResolvedAgent;
  readonly sessionId: string | undefined;
}
export interface ChildrenCheck {
  readonly store: CheckpointStore;
  readonly policy: ResolvedDriftPolicy;
  /** Approvals that are being rejected: their calls need no tool, on whatever level they are. */
  readonly rejectedIds: ReadonlySet<string>;
}

/** Those that are stored for open calls, and those in the background. @throws LOUSHO_RESUME_TOOL_MISSING, LOUSHO_AGENT_DRIFT */
export async function checkChildren(level: Level, check: ChildrenCheck): Promise<readonly StoredChild[]> {
  const children: StoredChild[] = [];
  for (const { id, toolCallId } of callsOf(level)) {
    const checkpoint = await loadCheckpoint(check.store, id);
    if (checkpoint === null) continue;
    if (checkpoint.status === 'finished') children.push({ id, checkpoint, agent: level.agent, children: [] });
    else children.push(await checkChild(level, { id, checkpoint, toolCallId }, check));
  }
  return children;
}

/** Where they may be, and by which calls. */
function callsOf({
  checkpointId,
  stored,
  agent,
}: Level): readonly Pick<StoredChild & ToolCallPart, 'id' | 'toolCallId'>[] {
  const { runId, stepIndex: step } = stored;
  const open = openCalls(stored).filter(({ call }) => isTaskTool(agent.tools.get(call.toolName)));
  return [
    ...open.map(({ call: { toolCallId }, index }) => ({
      id: childCheckpointId(checkpointId, { runId, step, index }),
      toolCallId,
    })),
    ...openTasks(stored).map((task) => ({
      id: taskChildId(checkpointId, stored, task),
      toolCallId: givenTask(stored, task)?.call.toolCallId ?? '',
    })),
  ];
}

async function checkChild(
  { agent: lead, sessionId }: Level,
  { id, checkpoint, toolCallId }: { readonly toolCallId: string } & Pick<StoredChild, 'id' | 'checkpoint'>,
  check: ChildrenCheck,
): Promise<StoredChild> {
  const { agentName: name } = checkpoint;
  const subagent = lead.subagents.get(name);
  if (subagent === undefined) {
    const run = sessionId === undefined ? undefined : { sessionId };
    const missing = { toolName: 'task', toolCallId, subagent: name };
    throw new SDKError('LOUSHO_RESUME_TOOL_MISSING', { ...run, ...missing });
  }
  const ownSessionId = sessionId === undefined ? undefined : `${sessionId}/${toolCallId}`;
  const agent = await subagent.source.resolve(savedContext(checkpoint, ownSessionId), checkpoint);
  await checkAgent({
    ...{ stored: checkpoint, agent, sessionId, subagent: name, rejectedIds: check.rejectedIds },
    // A difference that is no refusal is reported when the sub-agent itself goes on.
    policy: refusalsOf(check.policy),
  });
  const level = { checkpointId: id, stored: checkpoint, agent, sessionId: ownSessionId };
  return { id, checkpoint, agent, children: await checkChildren(level, check) };
}

/** Where the call is that an approval of the lead is about. @throws LOUSHO_APPROVAL_ORPHANED, LOUSHO_STORE_READ_FAILED */
export function approvalInside(
  children: readonly StoredChild[],
  approval: CheckpointApproval,
  store: CheckpointStore,
): { readonly stored: Checkpoint; readonly agent: ResolvedAgent; readonly approval: CheckpointApproval } {
  const child = children.find(({ id }) => id === approval.childId);
  // Somebody saved it at another place: it is only not to be seen here yet.
  if (child === undefined && store.claims?.consistency === 'eventual')
    throw new SDKError('LOUSHO_STORE_READ_FAILED', { operation: 'load', id: approval.childId ?? '' });
  const inner = child?.checkpoint.approvals.find(({ id }) => id === approval.id);
  // What the sub-agent waits for is not what the person was shown, or it waits for nothing any more.
  if (child === undefined || inner === undefined || inner.argsHash !== approval.argsHash)
    throw new SDKError('LOUSHO_APPROVAL_ORPHANED', { approvalId: approval.id });
  // Its time began when people were asked.
  const asked = approval.expiresAt === undefined ? inner : { ...inner, expiresAt: approval.expiresAt };
  return inner.childId === undefined
    ? { stored: child.checkpoint, agent: child.agent, approval: asked }
    : approvalInside(child.children, asked, store);
}
