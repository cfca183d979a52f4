/** Opening → the checkpoint that the loop starts from, and the agent that goes on with it. Nothing is stored here. */
import {
  ConfigurationError,
  appendFrozen,
  deepFreeze,
  jsonEqual,
  type AgentDrift,
  type Checkpoint,
  type InProgressCheckpoint,
  type Message,
  type RunContext,
} from '@lousho/contract';
import { checkAgent, isInstructions, refreshedMessages } from './check-agent.ts';
import { checkDecision } from './check-decision.ts';
import { fold, startRun } from './fold.ts';
import type { ExecutableOpening } from './open-run.ts';
import type { ResolvedAgent } from './resolved-agent.ts';
import type { RunOrder } from './run-order.ts';

export interface Opened {
  readonly checkpoint: Checkpoint;
  readonly agent: ResolvedAgent;
  readonly drift?: AgentDrift | undefined;
}

export function openCheckpoint(order: RunOrder, opening: ExecutableOpening): Promise<Opened> {
  switch (opening.type) {
    case 'new':
    case 'continue':
      return openFresh(order, opening);
    case 'resume':
      return openUnfinished(order, opening);
    case 'decide':
      return openDecided(order, opening);
  }
}

async function openFresh(
  order: RunOrder,
  opening: Extract<ExecutableOpening, { type: 'new' | 'continue' }>,
): Promise<Opened> {
  const { request, source, engine, metadata, principal } = order;
  const given =
    opening.type === 'continue' ? opening.messages : 'messages' in request ? request.messages : [];
  const before = opening.type === 'continue' ? opening.stored : undefined;
  const ctx = runContext(order, given);
  const agent = await source.resolve(ctx, undefined);
  const { leading, input } = splitLeadingSystem(given, agent.instructions);
  const conversation = appendFrozen(refreshedMessages(before?.messages ?? [], agent), leading);
  const checkpoint = startRun(
    {
      runId: engine.ports.ids.random(),
      agentName: agent.name,
      fingerprint: await agent.fingerprint(),
      runConfig: source.isDynamic
        ? { ctx, ...(agent.model === undefined ? undefined : { model: agent.model }) }
        : undefined,
      principal,
      metadata,
      businessState: order.businessState === undefined ? before?.businessState : order.businessState,
    },
    { messages: conversation, inputIds: before?.inputIds ?? [] },
    { messages: input, inputId: 'inputId' in request ? request.inputId : undefined },
  );
  return { checkpoint, agent };
}

async function openUnfinished(
  order: RunOrder,
  { stored, messages }: Extract<ExecutableOpening, { type: 'resume' }>,
): Promise<Opened> {
  requireSamePrincipal(order, stored);
  const { agent, drift } = await resumingAgent(order, stored);
  const { request } = order;
  const forgiven = request.type === 'recover' ? request.forgivenStarts : undefined;
  let checkpoint = fold(stored, { type: 'began', forgiven });
  checkpoint = fold(checkpoint, {
    type: 'agentRefreshed',
    messages: refreshedMessages(stored.messages, agent),
    fingerprint: await agent.fingerprint(),
  });
  if (order.businessState !== undefined)
    checkpoint = fold(checkpoint, { type: 'stateGiven', businessState: deepFreeze(order.businessState) });
  if (messages.length === 0) return { checkpoint, agent, drift };
  const inputId = 'inputId' in request ? request.inputId : undefined;
  return { checkpoint: fold(checkpoint, { type: 'input', messages, inputId }), agent, drift };
}

/** The instructions stay those that the run started with: they are in its transcript. */
async function openDecided(
  order: RunOrder,
  { stored, approval }: Extract<ExecutableOpening, { type: 'decide' }>,
): Promise<Opened> {
  const { agent, drift } = await resumingAgent(order, stored);
  const decision = await checkDecision(order.decision, {
    approval,
    stored,
    agent,
    nowMs: order.engine.ports.clock.wallMs(),
  });
  return { checkpoint: fold(stored, { type: 'decided', approvalId: approval.id, decision }), agent, drift };
}

async function resumingAgent(order: RunOrder, stored: Checkpoint): Promise<Pick<Opened, 'agent' | 'drift'>> {
  const { messages, runInput, metadata, principal } = stored;
  const input = messages.slice(runInput.start, runInput.start + runInput.count);
  const { sessionId } = order;
  const ctx = stored.runConfig?.ctx ?? runContext({ sessionId, metadata, principal }, input);
  const agent = await order.source.resolve(ctx, stored);
  const rejectedId = order.decision?.approved === false ? order.decision.id : undefined;
  const drift = await checkAgent({
    stored,
    agent,
    sessionId: order.sessionId,
    policy: order.engine.onAgentDrift,
    rejectedId,
  });
  return { agent, drift };
}

function runContext(
  { sessionId, metadata, principal }: Pick<RunOrder, 'sessionId' | 'metadata' | 'principal'>,
  input: readonly Message[],
): RunContext {
  return deepFreeze({
    input,
    ...(sessionId === undefined ? undefined : { sessionId }),
    metadata: metadata ?? {},
    ...(principal === undefined ? undefined : { principal }),
  });
}

/**
 * System messages of the first input stay in the transcript, behind the agent's own instructions; those that came along with another
 * conversation of this agent are not doubled.
 */
function splitLeadingSystem(
  messages: readonly Message[],
  instructions: string | undefined,
): {
  readonly leading: readonly Message[];
  readonly input: readonly Message[];
} {
  const leading: Message[] = [];
  const input: Message[] = [];
  for (const message of messages) {
    if (message.role !== 'system') input.push(message);
    else if (!isInstructions(message) && message.content !== instructions) leading.push(message);
  }
  return { leading, input };
}

function requireSamePrincipal(order: RunOrder, stored: InProgressCheckpoint): void {
  if (order.principal === undefined || jsonEqual(order.principal, stored.principal)) return;
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
    option: 'principal',
    got: order.principal.id,
    want: 'the one that the unfinished run was started with',
  });
}
