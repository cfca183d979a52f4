/** From what a caller asks to a run under its lease: queue, lease, load, open, check, then the loop. Refusals leave the store as it was. */
import {
  ConfigurationError,
  SDKError,
  appendFrozen,
  deepFreeze,
  jsonEqual,
  type ApprovalDecision,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointStore,
  type ExecutionResult,
  type InProgressCheckpoint,
  type JsonObject,
  type JsonValue,
  type Message,
  type Principal,
  type RunContext,
} from '@lousho/contract';
import { checkAgent, refreshedMessages } from './check-agent.ts';
import { CheckpointWriter } from './checkpoint-writer.ts';
import { checkDecision } from './check-decision.ts';
import { executeRun } from './execute-run.ts';
import { fold, startRun } from './fold.ts';
import { acquireLease, isLeasingStore, type HeldLease } from './lease-keeper.ts';
import { openRun, type Opening, type RunRequest } from './open-run.ts';
import type { AgentSource, ResolvedAgent } from './resolved-agent.ts';
import { Run } from './run.ts';
import { errorEvent, type RunEvents } from './run-events.ts';
import type { RunInput } from './run-input.ts';
import type { Engine } from './run-options.ts';
import { inLine, type WhenBusy } from './run-queue.ts';
import { abortedResult, finishedResult } from './run-result.ts';
import type { RunStop } from './run-stop.ts';

export interface RunOrder {
  /** The key in the store. */
  readonly checkpointId: string;
  /** What callers know it by; absent for a run without one. */
  readonly sessionId: string | undefined;
  readonly request: RunRequest;
  readonly decision?: ApprovalDecision | undefined;
  /** Where the record of that decision lies. */
  readonly inbox?: ApprovalStore | undefined;
  readonly store: CheckpointStore;
  /** Whether the store dies with the run. */
  readonly isEphemeral: boolean;
  readonly approvals: ApprovalStore | undefined;
  readonly source: AgentSource;
  readonly engine: Engine;
  readonly metadata?: JsonObject | undefined;
  readonly principal?: Principal | undefined;
  readonly businessState?: JsonValue | undefined;
  readonly events: RunEvents;
  readonly input: RunInput;
  readonly stop: RunStop;
  readonly isStreaming: boolean;
  readonly whenBusy: WhenBusy;
  /** How long to wait for a lease that another decision holds. */
  readonly leaseWaitMs: number;
}

/** `null` when there is nothing to resume. @throws what `Agent.send` documents */
export async function executeOrder(order: RunOrder): Promise<ExecutionResult | null> {
  try {
    return await inLine(order.store, order.checkpointId, order.whenBusy, (key) => underLease(order, key));
  } finally {
    order.input.close();
    order.stop.dispose();
  }
}

async function underLease(order: RunOrder, key: object): Promise<ExecutionResult | null> {
  const lease = await takeLease(order);
  try {
    lease?.lost.addEventListener('abort', () => order.stop.loseLease(lease.lost.reason), { once: true });
    return await openAndExecute(order, key, lease);
  } finally {
    await lease?.release();
  }
}

async function takeLease(order: RunOrder): Promise<HeldLease | undefined> {
  const { store, engine, checkpointId } = order;
  const { clock, ids } = engine.ports;
  if (engine.lease === undefined || !isLeasingStore(store)) return undefined;
  const deps = { store, clock, ...engine.lease };
  const giveUpAtMs = clock.monotonicMs() + order.leaseWaitMs;
  for (;;) {
    const lease = await acquireLease(checkpointId, ids.random(), deps);
    if (lease !== undefined) return lease;
    if (clock.monotonicMs() >= giveUpAtMs)
      throw new SDKError('LOUSHO_SESSION_BUSY', { sessionId: order.sessionId ?? checkpointId });
    await new Promise<void>((resolve) => clock.setTimer(resolve, LEASE_POLL_MS));
  }
}

/** Two people decide sibling calls at one moment: the first decision is one save, so the second waits for milliseconds. */
const LEASE_POLL_MS = 25;

async function openAndExecute(
  order: RunOrder,
  key: object,
  lease: HeldLease | undefined,
): Promise<ExecutionResult | null> {
  const { checkpointId, sessionId } = order;
  const stored = (await order.store.load(checkpointId)) ?? null;
  const opening = openRun(sessionId ?? checkpointId, stored, order.request);
  switch (opening.type) {
    case 'refuse':
      throw opening.error;
    case 'nothing':
      return null;
    case 'stored':
      return finishedResult(opening.stored, sessionId);
    default:
      return execute(order, key, lease, opening);
  }
}

type Executable = Exclude<Opening, { type: 'refuse' | 'nothing' | 'stored' }>;

async function execute(
  order: RunOrder,
  key: object,
  lease: HeldLease | undefined,
  opening: Executable,
): Promise<ExecutionResult> {
  const opened = await openCheckpoint(order, opening);
  const { events, engine, stop } = order;
  const isResumed = opening.type === 'resume' || opening.type === 'decide';
  const writer = new CheckpointWriter(opened.checkpoint, isResumed ? opening.stored : undefined, {
    id: order.checkpointId,
    store: order.store,
    lease,
    clock: engine.ports.clock,
    traceparent: () => engine.telemetry.traceparent?.(),
    onSaved: (saved, durationMs) => reportSave(run, saved, durationMs, lease !== undefined),
  });
  const run: Run = new Run({ ...order, agent: opened.agent, writer, lease, isResumed, key });
  events.belongTo(run.checkpoint.runId, order.sessionId);
  events.emit('run.start', { agentName: opened.agent.name, resumed: isResumed });
  if (opened.drift !== undefined) events.emit('agent.drift', opened.drift);
  // Aborted before anything happened: the store stays as it was.
  if (stop.current?.type === 'abort') return endBeforeStart(run, stop.current.reason);
  await storeOpening(order, run, opening);
  takeInput(run);
  return executeRun(run);
}

function endBeforeStart(run: Run, reason: unknown): ExecutionResult {
  const result = abortedResult(run.checkpoint, run.sessionId, reason);
  run.events.emit('run.done', { finishReason: 'aborted', text: result.text, usage: result.usage });
  return result;
}

/* ── The checkpoint that the loop starts from ── */

interface Opened {
  readonly checkpoint: Checkpoint;
  readonly agent: ResolvedAgent;
  readonly drift?: Awaited<ReturnType<typeof checkAgent>>;
}

function openCheckpoint(order: RunOrder, opening: Executable): Promise<Opened> {
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
  opening: Extract<Executable, { type: 'new' | 'continue' }>,
): Promise<Opened> {
  const { request, source, engine, metadata, principal } = order;
  const given =
    opening.type === 'continue' ? opening.messages : request.type === 'send' ? request.messages : [];
  const before = opening.type === 'continue' ? opening.stored : undefined;
  const ctx = runContext(order, given);
  const agent = await source.resolve(ctx, undefined);
  const { leading, input } = splitLeadingSystem(given);
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
    { messages: input, inputId: request.type === 'send' ? request.inputId : undefined },
  );
  return { checkpoint, agent };
}

async function openUnfinished(
  order: RunOrder,
  { stored, messages }: Extract<Executable, { type: 'resume' }>,
): Promise<Opened> {
  requireSamePrincipal(order, stored);
  const { agent, drift } = await resumingAgent(order, stored);
  let checkpoint = fold(stored, { type: 'began' });
  checkpoint = fold(checkpoint, {
    type: 'agentRefreshed',
    messages: refreshedMessages(stored.messages, agent),
    fingerprint: await agent.fingerprint(),
  });
  if (order.businessState !== undefined)
    checkpoint = fold(checkpoint, { type: 'stateGiven', businessState: deepFreeze(order.businessState) });
  if (messages.length === 0) return { checkpoint, agent, drift };
  const inputId = order.request.type === 'send' ? order.request.inputId : undefined;
  return { checkpoint: fold(checkpoint, { type: 'input', messages, inputId }), agent, drift };
}

/** The instructions stay those that the run started with: they are in its transcript. */
async function openDecided(
  order: RunOrder,
  { stored, approval }: Extract<Executable, { type: 'decide' }>,
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
  const ctx =
    stored.runConfig?.ctx ??
    runContext(
      order,
      stored.messages.slice(stored.runInput.start, stored.runInput.start + stored.runInput.count),
    );
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

function runContext(order: RunOrder, input: readonly Message[]): RunContext {
  return deepFreeze({
    input,
    ...(order.sessionId === undefined ? undefined : { sessionId: order.sessionId }),
    metadata: order.metadata ?? {},
    ...(order.principal === undefined ? undefined : { principal: order.principal }),
  });
}

/** System messages of the first input stay in the transcript, behind the agent's own instructions. */
function splitLeadingSystem(messages: readonly Message[]): {
  readonly leading: readonly Message[];
  readonly input: readonly Message[];
} {
  const leading = messages.filter((message) => message.role === 'system');
  return {
    leading,
    input: leading.length === 0 ? messages : messages.filter((message) => message.role !== 'system'),
  };
}

function requireSamePrincipal(order: RunOrder, stored: InProgressCheckpoint): void {
  if (order.principal === undefined || jsonEqual(order.principal, stored.principal)) return;
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
    option: 'principal',
    got: order.principal.id,
    want: 'the one that the unfinished run was started with',
  });
}

/* ── What opening stores ── */

/** What a resume or a decision changes is stored before anything else happens. */
async function storeOpening(order: RunOrder, run: Run, opening: Executable): Promise<void> {
  if (opening.type !== 'resume' && opening.type !== 'decide') return;
  try {
    // Without a store, whoever removes the record has the run: of two deciders one goes on.
    if (order.isEphemeral) await claimSnapshot(order);
    // 1. The decision, or that an execution begins. Crash before it: nothing changed.
    await run.writer.save();
    // 2. The inbox lets go of what is decided. Crash before it: the leftover decides nothing, and the next resume removes it.
    await removeDecided(order, run);
  } catch (error) {
    run.events.emit('error', { error: errorEvent(error) });
    run.events.emit('run.done', { finishReason: 'error', text: '' });
    throw error;
  }
}

async function claimSnapshot({ decision, inbox }: RunOrder): Promise<void> {
  if (decision === undefined || inbox === undefined) return;
  if (!(await inbox.delete(decision.id)))
    throw new SDKError('LOUSHO_APPROVAL_ORPHANED', { approvalId: decision.id });
}

async function removeDecided(order: RunOrder, run: Run): Promise<void> {
  const inbox = order.inbox ?? order.approvals;
  if (inbox === undefined) return;
  const { checkpoint } = run;
  for (const { id, decision } of checkpoint.approvals) {
    if (decision !== undefined) await inbox.delete(id);
    else if (order.isEphemeral)
      await carrySnapshot(inbox, id, { checkpointId: order.checkpointId, checkpoint });
  }
}

/** The records that are still open carry the state that the next decision goes on from. */
async function carrySnapshot(
  inbox: ApprovalStore,
  id: string,
  state: { checkpointId: string; checkpoint: Checkpoint },
): Promise<void> {
  const record = await inbox.load(id);
  if (record)
    await inbox.save(deepFreeze({ ...record, snapshot: { checkpoints: [state], remainingToolCalls: [] } }));
}

function takeInput(run: Run): void {
  run.input.open({
    hold: (messages) => run.commit({ type: 'input', messages, hold: true }),
    onQueued: (id, text) => run.events.emit('input.queued', { id, text }),
    onSteered: (id, text, applied) => run.events.emit('input.steered', { id, text, applied }),
  });
}

function reportSave(run: Run, { status, stepIndex }: Checkpoint, durationMs: number, fenced: boolean): void {
  run.events.emit('checkpoint.saved', { checkpointId: run.checkpointId, status, step: stepIndex });
  const { onCheckpoint } = run.engine.telemetry;
  onCheckpoint?.call(run.engine.telemetry, {
    ...run.segmentInfo(),
    checkpointId: run.checkpointId,
    status,
    durationMs,
    fenced,
  });
}
