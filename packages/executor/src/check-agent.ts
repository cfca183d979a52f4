/** Whether this agent may continue a stored run: the tools of its open calls are there, and it is the agent that began it. */
import {
  SDKError,
  appendFrozen,
  deepFreeze,
  type AgentDrift,
  type Checkpoint,
  type DriftPolicy,
  type Message,
  type SystemMessage,
} from '@lousho/contract';
import { compareAgents } from './agent-drift.ts';
import { openCalls } from './next-action.ts';
import type { ResolvedAgent } from './resolved-agent.ts';

export interface AgentCheck {
  readonly stored: Checkpoint;
  readonly agent: ResolvedAgent;
  readonly sessionId: string | undefined;
  readonly policy: DriftPolicy;
  /** An approval that is being rejected: its call needs no tool. */
  readonly rejectedId: string | undefined;
}

/** The difference to report, if there is one. Nothing was changed when it throws. @throws LOUSHO_RESUME_TOOL_MISSING, LOUSHO_AGENT_DRIFT */
export async function checkAgent({
  stored,
  agent,
  sessionId,
  policy,
  rejectedId,
}: AgentCheck): Promise<AgentDrift | undefined> {
  const id = sessionId === undefined ? undefined : { sessionId };
  for (const { call } of openCalls(stored)) {
    const approval = stored.approvals.find((candidate) => candidate.toolCallId === call.toolCallId);
    const isRejected =
      approval !== undefined && (approval.decision?.approved === false || approval.id === rejectedId);
    if (isRejected || agent.tools.has(call.toolName)) continue;
    throw new SDKError('LOUSHO_RESUME_TOOL_MISSING', {
      ...id,
      toolName: call.toolName,
      toolCallId: call.toolCallId,
    });
  }
  if (policy === 'ignore') return undefined;
  const drift = compareAgents(stored.fingerprint, await agent.fingerprint());
  if (drift === undefined) return undefined;
  const error = new SDKError('LOUSHO_AGENT_DRIFT', { ...id, drift });
  if (policy === 'error') throw error;
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
