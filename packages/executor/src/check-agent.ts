/** Whether this agent may continue a stored run: the tools of its open calls are there, and it is the agent that began it. */
import {
  SDKError,
  appendFrozen,
  deepFreeze,
  type AgentDrift,
  type Checkpoint,
  type Message,
  type SystemMessage,
} from '@lousho/contract';
import { compareAgents, heededDrift, type ResolvedDriftPolicy } from './agent-drift.ts';
import { approvalOfCall, openCalls } from './next-action.ts';
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
  for (const { call } of openCalls(stored)) {
    const approval = approvalOfCall(stored, call.toolCallId);
    const isRejected =
      approval !== undefined && (approval.decision?.approved === false || rejectedIds.has(approval.id));
    if (isRejected || agent.tools.has(call.toolName)) continue;
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

/** The transcript with this agent's instructions at its head. System messages that came with the input stay behind them. */
export function refreshedMessages(messages: readonly Message[], agent: ResolvedAgent): readonly Message[] {
  const [first, ...rest] = messages;
  const isOurs = first?.role === 'system' && isInstructions(first);
  if (agent.instructions === undefined) return isOurs ? rest : messages;
  if (isOurs && first.content === agent.instructions) return messages;
  return appendFrozen([instructionsMessage(agent.instructions)], isOurs ? rest : messages);
}

/** Whether it is the agent's own instructions, not a system message that came with the input. */
export function isInstructions(message: SystemMessage): boolean {
  return message.providerMetadata?.lousho !== undefined;
}

/** Marked as ours, so that it can be told from a system message that came with the input. */
function instructionsMessage(instructions: string): SystemMessage {
  return deepFreeze({
    role: 'system',
    content: instructions.toWellFormed(),
    providerMetadata: { lousho: { instructions: true } },
  });
}
