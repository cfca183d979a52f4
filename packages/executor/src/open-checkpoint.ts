/** Opening → the checkpoint that the loop starts from, and the agent that goes on with it. Nothing is stored here. */
import {
  ConfigurationError,
  appendFrozen,
  deepFreeze,
  jsonEqual,
  type AgentDrift,
  type Checkpoint,
  type DelegatedUsage,
  type InProgressCheckpoint,
  type Message,
} from '@lousho/contract';
import { checkAgent } from './check-agent.ts';
import { approvalInside, checkChildren, type StoredChild } from './check-children.ts';
import { checkDecision } from './check-decision.ts';
import { isExpired } from './decide-approval.ts';
import { fold } from './fold.ts';
import { startRun } from './start-run.ts';
import { asDelegated, knownSpend } from './next-action.ts';
import { answeringAgent } from './handoff-tool.ts';
import { isInstructions, refreshedMessages } from './instructions.ts';
import type { ExecutableOpening } from './open-run.ts';
import type { ResolvedAgent } from './resolved-agent.ts';
import { runContext, savedContext } from './run-context.ts';
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
    case 'handed-down':
      return openHandedDown(order, opening);
  }
}

async function openFresh(
  order: RunOrder,
  opening: Extract<ExecutableOpening, { type: 'new' | 'continue' }>,
): Promise<Opened> {
  const { request, source, engine, metadata, principal } = order;
  const given =
    opening.type === 'continue' ? opening.messages : 'messages' in request ? request.messages : [];
  const before = opening.type === 'continue' ? opening.before : undefined;
  const ctx = runContext(order, given);
  // Who the conversation was handed over to goes on with it, as long as that one is there. A session has the transcript alone.
  const answering = answeringAgent(given) ?? answeringAgent(before?.messages ?? []);
  const agent = await source.resolve(ctx, undefined, answering);
  const { leading, input } = splitLeadingSystem(given, agent.instructions);
  const conversation = appendFrozen(refreshedMessages(before?.messages ?? [], agent), leading);
  const checkpoint = startRun(
    {
      runId: engine.ports.ids.random(),
      agentName: source.name,
      activeAgent: agent.name === source.name ? undefined : agent.name,
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
  const { agent, drift, children } = await resumingAgent(order, stored);
  const { request } = order;
  const forgiven = request.type === 'recover' ? request.forgivenStarts : undefined;
  let checkpoint = withSpend(fold(stored, { type: 'began', forgiven }), children);
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
  const { agent, drift, children } = await resumingAgent(order, stored);
  const decision = await checkDecision(order.decision, {
    ...(approval.childId === undefined
      ? { approval, stored, agent }
      : approvalInside(children, approval, order.store)),
    nowMs: order.engine.ports.clock.wallMs(),
  });
  const decided = { type: 'decided', approvalId: approval.id, decision } as const;
  return { checkpoint: fold(withSpend(stored, children), decided), agent, drift };
}

/** Decisions that were made with the lead, and checked there. The instructions stay those that the sub-agent started with. */
async function openHandedDown(
  order: RunOrder,
  { stored, decided }: Extract<ExecutableOpening, { type: 'handed-down' }>,
): Promise<Opened> {
  const { agent, drift, children } = await resumingAgent(order, stored);
  let checkpoint = withSpend(stored, children);
  for (const { id, decision } of decided)
    if (decision !== undefined) checkpoint = fold(checkpoint, { type: 'decided', approvalId: id, decision });
  return { checkpoint, agent, drift };
}

interface Resuming extends Pick<Opened, 'agent' | 'drift'> {
  /** Sub-agents that are stored for its open calls. */
  readonly children: readonly StoredChild[];
}

async function resumingAgent(order: RunOrder, stored: Checkpoint): Promise<Resuming> {
  const { sessionId, checkpointId, store } = order;
  const agent = await order.source.resolve(savedContext(stored, sessionId), stored);
  const policy = order.engine.onAgentDrift;
  const rejectedIds = rejectedBy(order, stored);
  // Below first: what this one says about itself on the console comes when nothing refuses any more.
  const children = await checkChildren(
    { checkpointId, stored, agent, sessionId },
    { store, policy, rejectedIds },
  );
  const subagent = order.task?.subagentPath.at(-1);
  const drift = await checkAgent({ stored, agent, sessionId, policy, rejectedIds, subagent });
  return { agent, drift, children };
}

/** By this decision, by those that come down from the lead, or before: then they are still on their way to a sub-agent. */
function rejectedBy({ decision, request, engine }: RunOrder, { approvals }: Checkpoint): ReadonlySet<string> {
  const given = approvals.find(({ id }) => id === decision?.id);
  // Too late is a no, whatever was said.
  const isLate = given !== undefined && isExpired(given, engine.ports.clock.wallMs());
  const handed = request.type === 'task' ? request.decided : [];
  const rejected = [...approvals, ...handed].filter((approval) => approval.decision?.approved === false);
  const ids = rejected.map(({ id }) => id);
  return new Set(decision !== undefined && (isLate || !decision.approved) ? [...ids, decision.id] : ids);
}

/** A process may die between the save of a sub-agent and that of its lead: what it spent stands in its own checkpoint. */
function withSpend(stored: Checkpoint, children: readonly StoredChild[]): Checkpoint {
  let checkpoint = stored;
  for (const { id, checkpoint: child } of children) {
    const usage = asDelegated(knownSpend(child));
    if (!knowsSpend(checkpoint, id, usage))
      checkpoint = fold(checkpoint, { type: 'childSpent', child: { checkpointId: id, usage } });
  }
  return checkpoint;
}

function knowsSpend({ delegatedInFlight }: Checkpoint, id: string, { modelCalls }: DelegatedUsage): boolean {
  const known = delegatedInFlight.find(({ checkpointId }) => checkpointId === id);
  return modelCalls === (known?.usage.modelCalls ?? 0);
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
