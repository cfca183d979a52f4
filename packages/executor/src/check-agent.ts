/** Whether this agent may continue a stored run: the tools of its open calls are there, and it is the agent that began it. */
import { SDKError, type AgentDrift, type Checkpoint } from '@lousho/contract';
import { compareAgents, heededDrift, type ResolvedDriftPolicy } from './agent-drift.ts';
import { handoffToolName, lastHandoff } from './handoff-tool.ts';
import { approvalOfCall, openCalls } from './next-action.ts';
import { isRemoteCall } from './remote-calls.ts';
import type { ResolvedAgent } from './resolved-agent.ts';

export interface AgentCheck {
  readonly stored: Checkpoint;
  readonly agent: ResolvedAgent;
  readonly sessionId: string | undefined;
  readonly policy: ResolvedDriftPolicy;
  /** Approvals that are being rejected: their calls need no tool. */
  readonly rejectedIds: ReadonlySet<string>;
  /** Its name when it is a sub-agent. */
  readonly subagent?: string | undefined;
}

/** The difference to report, if there is one. Nothing was changed when it throws. @throws LOUSHO_RESUME_TOOL_MISSING, LOUSHO_AGENT_DRIFT */
export async function checkAgent({
  stored,
  agent,
  sessionId,
  policy,
  rejectedIds,
  subagent: name,
}: AgentCheck): Promise<AgentDrift | undefined> {
  const id = sessionId === undefined ? undefined : { sessionId };
  const subagent = name === undefined ? undefined : { subagent: name };
  if (stored.activeAgent !== undefined && stored.activeAgent !== agent.name) {
    throw new SDKError('LOUSHO_RESUME_TOOL_MISSING', {
      ...{ ...id, ...subagent },
      toolName: handoffToolName(stored.activeAgent),
      toolCallId: lastHandoff(stored.messages)?.toolCallId ?? '',
      activeAgent: stored.activeAgent,
    });
  }
  for (const { call } of openCalls(stored)) {
    const approval = approvalOfCall(stored, call.toolCallId);
    const isRejected =
      approval !== undefined && (approval.decision?.approved === false || rejectedIds.has(approval.id));
    if (isRejected || agent.tools.has(call.toolName) || isRemoteCall(agent, call)) continue;
    throw new SDKError('LOUSHO_RESUME_TOOL_MISSING', {
      ...{ ...id, ...subagent },
      toolName: call.toolName,
      toolCallId: call.toolCallId,
    });
  }
  const difference = compareAgents(stored.fingerprint, await agent.fingerprint());
  const heeded = difference && heededDrift({ ...difference, ...subagent }, policy);
  if (heeded === undefined) return undefined;
  const { drift } = heeded;
  const error = new SDKError('LOUSHO_AGENT_DRIFT', { ...id, drift });
  if (heeded.isRefused) throw error;
  console.warn(
    `lousho: ${error.message.replace(' Nothing was changed.', '')} The run continues (onAgentDrift: 'warn').`,
  );
  return drift;
}
