/** A person decides: the decision becomes part of the run, and the run goes on when it was the last one open. */
import {
  ConfigurationError,
  SDKError,
  checkpointIdOfApproval,
  classifyCheckpointId,
  requireKnownOptions,
  type AgentRun,
  type ApprovalDecision,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointStore,
  type ExecutionResult,
  type LLMProvider,
  type OptionNames,
} from '@lousho/contract';
import { agentOfDefinition } from './agent-of-definition.ts';
import { stateInRecord } from './approval-snapshot.ts';
import type { Conversation } from './conversation.ts';
import { findApproval, isAboutToAsk, type GivenDecision } from './decide-approval.ts';
import { executePlan, streamPlan, type OrderPlan } from './execute.ts';
import { isInstructions } from './instructions.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import { refuseSealed } from './refuse-sealed.ts';
import { refuseOption, requireObject } from './require-option.ts';
import type { AgentSource } from './resolved-agent.ts';
import { resolveEngine, type AgentDefinition, type Engine, type EngineOptions } from './run-options.ts';
import type { ToolRegistry } from './tool-registry.ts';

export interface ResumeAfterApprovalOptions extends EngineOptions {
  /** Default: an agent of the saved name with the whole registry and the saved instructions. */
  readonly agent?: AgentDefinition | undefined;
  /** For later pauses of the run. Default: the one given. */
  readonly approvalStore?: ApprovalStore | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How long a decision waits for the lease of another decision of the same run. */
const DECISION_LEASE_WAIT_MS = 2_000;

/**
 * `checkpointStore` may be missing only for a run that had none.
 * @throws LOUSHO_APPROVAL_NOT_FOUND, LOUSHO_APPROVAL_DECIDED, LOUSHO_APPROVAL_ORPHANED, LOUSHO_TOOL_ARGS_INVALID, LOUSHO_SESSION_BUSY,
 * LOUSHO_AGENT_DRIFT, LOUSHO_RESUME_TOOL_MISSING, LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE, LOUSHO_STORE_*; but for the first three the approval stays pending
 */
export async function resumeAfterApproval(
  decision: ApprovalDecision,
  approvalStore: ApprovalStore,
  toolRegistry: ToolRegistry,
  provider: LLMProvider,
  options: ResumeAfterApprovalOptions = {},
  checkpointStore?: CheckpointStore,
): Promise<ExecutionResult> {
  return decideAndExecute(
    await planDecision(wiring(decision, approvalStore, toolRegistry, provider, options, checkpointStore)),
  );
}

/** `resumeAfterApproval` with events. */
export function streamAfterApproval(
  decision: ApprovalDecision,
  approvalStore: ApprovalStore,
  toolRegistry: ToolRegistry,
  provider: LLMProvider,
  options: ResumeAfterApprovalOptions = {},
  checkpointStore?: CheckpointStore,
): AgentRun {
  const wired = wiring(decision, approvalStore, toolRegistry, provider, options, checkpointStore);
  return streamPlan(planDecision(wired), wired.engine.ports.clock);
}

export interface DecisionWiring {
  readonly decision: ApprovalDecision;
  /** Default: a person. */
  readonly decidedBy?: GivenDecision['source'];
  readonly inbox: ApprovalStore;
  /** Where later pauses of the run go. */
  readonly approvals: ApprovalStore;
  readonly store: CheckpointStore | undefined;
  readonly source: AgentSource;
  readonly engine: Engine;
  readonly signal: AbortSignal | undefined;
  readonly onStart?: OrderPlan['onStart'];
  /** Of a run that is a turn of one. */
  readonly conversationOf?: ((checkpointId: string) => Conversation | undefined) | undefined;
}

/** Reads before anything is taken: a decision that can change nothing fails at once, also while the run executes. */
export async function planDecision(wired: DecisionWiring): Promise<OrderPlan> {
  const { decision, inbox, engine } = wired;
  requireDecision(decision);
  const { id } = decision;
  const checkpointId = typeof id === 'string' ? checkpointIdOfApproval(id) : undefined;
  if (checkpointId === undefined) throw new SDKError('LOUSHO_APPROVAL_NOT_FOUND', { approvalId: String(id) });
  const record = (await inbox.load(id)) ?? undefined;
  refuseSealed(record, { id, record: 'approval' });
  const isEphemeral = record?.snapshot !== undefined;
  const store = isEphemeral ? stateInRecord(inbox, id) : wired.store;
  if (store === undefined) {
    if (record === undefined) throw new SDKError('LOUSHO_APPROVAL_NOT_FOUND', { approvalId: id });
    throw new ConfigurationError('LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE', {
      operation: `Deciding approval "${id}"`,
    });
  }
  const conversation = wired.conversationOf?.(checkpointId);
  const stored = await loadCheckpoint(store, checkpointId);
  const found = findApproval(stored, id, stored === null ? await conversation?.said() : []);
  if (found.type === 'closed') {
    // Its record is there before its mark: withdrawn now, the run would wait on what nobody finds.
    if (stored !== null && isAboutToAsk(stored, checkpointId, id))
      throw new SDKError('LOUSHO_SESSION_BUSY', { sessionId: sessionIdOf(checkpointId) });
    // Nothing waits on it: the record is a leftover, and goes.
    await inbox.delete(id);
    throw found.error;
  }
  const isExpiry = wired.decidedBy === 'expiry';
  return {
    checkpointId,
    sessionId: isEphemeral && conversation === undefined ? undefined : sessionIdOf(checkpointId),
    request: { type: 'decide', approvalId: id },
    conversation,
    decision: { ...decision, source: wired.decidedBy ?? 'person' },
    inbox,
    store,
    isEphemeral,
    approvals: wired.approvals,
    source: wired.source,
    engine,
    signal: wired.signal,
    onStart: wired.onStart,
    whenBusy: isExpiry ? 'refuse' : 'wait',
    // An executing run is busy for as long as it likes; another decision only for a moment. What has expired stays so.
    leaseWaitMs: isWaiting(found.checkpoint) && !isExpiry ? DECISION_LEASE_WAIT_MS : 0,
  };
}

const everyPart: OptionNames<ApprovalDecision> = {
  id: true,
  approved: true,
  note: true,
  args: true,
  answer: true,
  by: true,
};

/** Nothing but a plain yes is a yes: what arrives here has often been text in a browser. */
function requireDecision(decision: ApprovalDecision): void {
  requireObject('decision', decision, 'an object with id and approved');
  requireKnownOptions('decision.', decision, everyPart);
  if (typeof decision.approved !== 'boolean') refuseOption('approved', decision.approved, 'true or false');
  for (const option of ['note', 'by', 'answer'] as const) {
    const text: unknown = decision[option];
    if (text !== undefined && typeof text !== 'string') refuseOption(option, text, 'a text');
  }
}

function isWaiting(checkpoint: Checkpoint): boolean {
  return checkpoint.status === 'awaiting-approval';
}

async function decideAndExecute(plan: OrderPlan): Promise<ExecutionResult> {
  const result = await executePlan(plan);
  if (result === null) throw new Error('Invariant: a decision gave no result');
  return result;
}

/** The agent of the saved run: its name, model and instructions, with the tools of the registry. */
function savedAgent(provider: LLMProvider, registry: ToolRegistry): AgentSource {
  return {
    name: 'agent',
    isDynamic: false,
    resolve(_ctx, stored) {
      const [first] = stored?.messages ?? [];
      const instructions = first?.role === 'system' && isInstructions(first) ? first.content : undefined;
      const model = stored?.fingerprint?.model;
      const definition = {
        name: stored?.activeAgent ?? stored?.agentName,
        instructions,
        ...(model === provider.modelId ? undefined : { model }),
      };
      return agentOfDefinition(definition, provider, registry).resolve(_ctx, stored);
    },
  };
}

function wiring(
  decision: ApprovalDecision,
  inbox: ApprovalStore,
  registry: ToolRegistry,
  provider: LLMProvider,
  options: ResumeAfterApprovalOptions,
  store: CheckpointStore | undefined,
): DecisionWiring {
  return {
    decision,
    inbox,
    approvals: options.approvalStore ?? inbox,
    store,
    source:
      options.agent === undefined
        ? savedAgent(provider, registry)
        : agentOfDefinition(options.agent, provider, registry),
    engine: resolveEngine(options),
    signal: options.signal,
  };
}

function sessionIdOf(checkpointId: string): string {
  const kind = classifyCheckpointId(checkpointId);
  return kind.kind === 'session' ? kind.sessionId : checkpointId;
}
