/** A run under its lease: queue, lease, load, open, check, then the loop. Refusals leave the store as it was. */
import { SDKError, type Checkpoint, type ExecutionResult } from '@lousho/contract';
import { CheckpointWriter } from './checkpoint-writer.ts';
import { executeRun } from './execute-run.ts';
import { findApproval } from './decide-approval.ts';
import { acquireLease, isLeasingStore, type HeldLease } from './lease-keeper.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import { openCheckpoint } from './open-checkpoint.ts';
import { openRun, type ExecutableOpening, type RestingCheckpoint } from './open-run.ts';
import { Run } from './run.ts';
import { errorEvent } from './run-events.ts';
import type { RunOrder } from './run-order.ts';
import { inLine } from './run-queue.ts';
import { abortedResult, pausedOrFinished } from './run-result.ts';
import { storeOpening } from './store-opening.ts';

/** `null` when there is nothing to resume. @throws what `Agent.send` documents */
export async function executeOrder(order: RunOrder): Promise<ExecutionResult | null> {
  const { events, checkpointId: id, whenBusy, stop } = order;
  const store = (order.isEphemeral ? order.inbox : undefined) ?? order.store;
  try {
    const result = await inLine({ store, id, whenBusy, left: stop.requested }, () => underLease(order));
    // Only now, when the lease is given back: whoever hears it may go on with the run at once.
    if (result !== null) reportDone(order, result);
    return result;
  } catch (error) {
    if (!isUnasked(order) || events.haveBegun) {
      events.emit('error', { error: errorEvent(error) });
      events.emit('run.done', { finishReason: 'error', text: '' });
    }
    throw error;
  }
}

/** Nobody waits for it: when it is turned away, nothing has happened. */
function isUnasked({ request, decision }: RunOrder): boolean {
  return request.type === 'recover' || decision?.source === 'expiry';
}

function reportDone({ events }: RunOrder, { finishReason, text, usage, approvalIds }: ExecutionResult): void {
  events.emit('run.done', {
    finishReason,
    text,
    usage,
    ...(approvalIds === undefined ? undefined : { approvalIds }),
  });
}

async function underLease(order: RunOrder): Promise<ExecutionResult | null> {
  const stopped = order.stop.current;
  if (stopped?.type === 'shutdown') throw shutdownError(order.sessionId);
  // Stopped while it waited: it only says what is there, and changes nothing.
  if (stopped !== undefined) return openAndExecute(order, undefined);
  // What is over is given without the lease: deliveries that come together need not wait for each other.
  if (order.request.type === 'once') {
    const stored = await loadCheckpoint(order.store, order.checkpointId);
    if (stored !== null && stored.status !== 'in-progress') return giveStored(order, stored);
  }
  const lease = await takeLease(order);
  try {
    lease?.lost.addEventListener('abort', () => order.stop.loseLease(lease.lost.reason), { once: true });
    // It waited for the lease: somebody may have taken the lead over and ended this task meanwhile, which would begin anew.
    await order.task?.ensureLeadHeld();
    return await openAndExecute(order, lease);
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
    const busy = new SDKError('LOUSHO_SESSION_BUSY', { sessionId: order.sessionId ?? checkpointId });
    if (clock.monotonicMs() >= giveUpAtMs) throw busy;
    if (order.stop.current !== undefined) throw busy;
    await order.stop.sleep(order.task === undefined ? LEASE_POLL_MS : TASK_LEASE_POLL_MS);
  }
}

/** Two people decide sibling calls at one moment: the first decision is one save, so the second waits for milliseconds. */
const LEASE_POLL_MS = 25;
/** The lease of a process that died lasts for up to a minute. */
const TASK_LEASE_POLL_MS = 1_000;

async function openAndExecute(
  order: RunOrder,
  lease: HeldLease | undefined,
): Promise<ExecutionResult | null> {
  const { checkpointId, sessionId } = order;
  const stored = await loadCheckpoint(order.store, checkpointId);
  const conversation = await order.conversation?.open();
  if (order.conversation !== undefined && conversation === undefined) return turnIsOver(order);
  const opening = openRun(sessionId ?? checkpointId, stored, order.request, conversation);
  switch (opening.type) {
    case 'refuse':
      throw opening.error;
    case 'nothing':
      return null;
    case 'adopt':
      return adopt(order, opening.stored, lease);
    case 'stored':
      return giveStored(order, opening.stored);
    case 'new':
      await order.beforeNew?.();
      return execute(order, lease, opening);
    default:
      return execute(order, lease, opening);
  }
}

function giveStored(order: RunOrder, stored: RestingCheckpoint): ExecutionResult {
  announce(order, stored, true);
  return pausedOrFinished(stored, order.sessionId);
}

/** The conversation went on without it. Whoever wanted something else than a decision looks again. @throws LOUSHO_APPROVAL_DECIDED, LOUSHO_APPROVAL_ORPHANED */
async function turnIsOver({ request, conversation }: RunOrder): Promise<null> {
  if (request.type !== 'decide') return null;
  const found = findApproval(null, request.approvalId, await conversation?.said());
  if (found.type === 'closed') throw found.error;
  return null;
}

/** Nothing runs: its end is recorded, and the conversation goes on. Stopped, the order only says what is there. */
async function adopt(
  order: RunOrder,
  stored: Checkpoint,
  lease: HeldLease | undefined,
): Promise<ExecutionResult | null> {
  const { stop, sessionId, conversation } = order;
  if (stop.current === undefined) {
    await conversation?.settle(stored, lease);
    return null;
  }
  return stored.status === 'in-progress'
    ? abortedResult(stored, sessionId, undefined)
    : pausedOrFinished(stored, sessionId);
}

async function execute(
  order: RunOrder,
  lease: HeldLease | undefined,
  opening: ExecutableOpening,
): Promise<ExecutionResult> {
  const opened = await openCheckpoint(order, opening);
  const { events, engine, stop } = order;
  const isResumed = 'stored' in opening;
  const writer = new CheckpointWriter(opened.checkpoint, isResumed ? opening.stored : undefined, {
    id: order.checkpointId,
    store: order.store,
    lease,
    clock: engine.ports.clock,
    traceparent: () => engine.telemetry.traceparent?.(run.segmentInfo()),
    onSaved(saved, durationMs) {
      reportSave(run, saved, durationMs, lease !== undefined);
      if (order.request.type === 'recover' && isProgress(saved)) order.request.onProgress();
    },
  });
  const run: Run = new Run({
    ...order,
    ...{ agent: opened.agent, writer, lease, isResumed },
    ranBefore: isResumed && !isUnstarted(opening.stored),
    executeChild: executeOrder,
    isTurn: order.conversation !== undefined,
  });
  announce(order, run.checkpoint, isResumed);
  if (opened.drift !== undefined) events.emit('agent.drift', opened.drift);
  // Stopped before anything happened: the store stays as it was.
  if (stop.current?.type === 'shutdown') throw shutdownError(order.sessionId);
  if (stop.current?.type === 'abort')
    return abortedResult(run.checkpoint, run.sessionId, stop.current.reason);
  if (isResumed) await storeOpening(order, run);
  else if (order.onBegun !== undefined) await run.writer.save();
  await order.onBegun?.();
  takeInput(run);
  const result = await executeRun(run);
  await order.conversation?.settle(run.checkpoint, lease);
  return result;
}

/** A fork that nobody has resumed yet. */
function isUnstarted(stored: Checkpoint): boolean {
  return stored.status === 'in-progress' && stored.startsWithoutProgress === 0;
}

function isProgress(saved: Checkpoint): boolean {
  return saved.status !== 'in-progress' || saved.startsWithoutProgress === undefined;
}

function shutdownError(sessionId: string | undefined): SDKError {
  return new SDKError('LOUSHO_SHUTDOWN', sessionId === undefined ? {} : { sessionId });
}

function announce({ events, sessionId }: RunOrder, { runId, agentName }: Checkpoint, resumed: boolean): void {
  events.belongTo(runId, sessionId);
  events.emit('run.start', { agentName, resumed });
}

function takeInput(run: Run): void {
  run.input.open({
    hold: (messages) => run.commit({ type: 'input', messages }),
    onQueued: (id, text) => run.events.emit('input.queued', { id, text }),
    onSteered: (id, text, applied) => run.events.emit('input.steered', { id, text, applied }),
  });
}

function reportSave(run: Run, { status, stepIndex }: Checkpoint, durationMs: number, fenced: boolean): void {
  run.events.emit('checkpoint.saved', { checkpointId: run.checkpointId, status, step: stepIndex });
  run.engine.telemetry.onCheckpoint?.({
    ...run.segmentInfo(),
    checkpointId: run.checkpointId,
    status,
    durationMs,
    fenced,
  });
}
