/** A `task` call: the run of its sub-agent, whether that is new, interrupted, paused or finished. One loop executes it, as it does its lead. */
import { SDKError, isCheckpointId, lastStep, type Message } from '@lousho/contract';
import { inputMessages } from './accept-input.ts';
import { limitsLeft } from './limits-left.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import { asDelegated, knownSpend, type OpenCall } from './next-action.ts';
import type { Run } from './run.ts';
import { RunInput } from './run-input.ts';
import type { RunOrder } from './run-order.ts';
import type { TaskPlace } from './task-place.ts';
import { findTask, nextTaskId, readTask, taskIdIn } from './task-records.ts';
import { outcomeOf, outcomeOfError, refused, type TaskFacts, type TaskOutcome } from './task-result.ts';
import type { TaskArgs } from './task-tool.ts';

/** Never rejects. */
export async function runTask(run: Run, open: OpenCall, args: TaskArgs): Promise<TaskOutcome> {
  const { call, index } = open;
  const { messages } = run.checkpoint;
  const childId = run.childId(index);
  const { agent, taskId = nextTaskId(messages, call.toolCallId) } = args;
  const about: TaskFacts = { call, childId, agent, taskId };
  if (!isCheckpointId(childId))
    return refused(about, 'The id of the run is too long for a sub-agent this deep.');
  try {
    await requireVisible(run, childId);
    const earlier = args.taskId === undefined ? noEarlierTask : await earlierTask(run, open, about);
    if (earlier.type === 'refused') return refused(about, earlier.why, earlier.code);
    const result = await run.executeChild(childOrder(run, open, args, earlier.messages));
    if (result === null) throw new Error(`Invariant: the sub-agent ${childId} gave no result`);
    return await outcomeOf(run, result, about);
  } catch (error) {
    return outcomeOfError(run, error, about);
  }
}

/**
 * Saved at another place, and not to be seen here yet: it would start over. @throws LOUSHO_STORE_READ_FAILED
 */
async function requireVisible({ store, checkpoint }: Run, childId: string): Promise<void> {
  if (store.claims?.consistency !== 'eventual') return;
  const isKnown = checkpoint.delegatedInFlight.some(({ checkpointId }) => checkpointId === childId);
  if (isKnown && (await loadCheckpoint(store, childId)) === null)
    throw new SDKError('LOUSHO_STORE_READ_FAILED', { operation: 'load', id: childId });
}

/* ── The task that it goes on with ── */

type EarlierTask =
  /** `undefined`: nothing was said before, or the run is there already and has it. */
  | { readonly type: 'found'; readonly messages: readonly Message[] | undefined }
  | { readonly type: 'refused'; readonly code: string; readonly why: string };

const noEarlierTask: EarlierTask = { type: 'found', messages: undefined };

async function earlierTask(run: Run, { index }: OpenCall, about: TaskFacts): Promise<EarlierTask> {
  const { taskId, agent, childId } = about;
  const { messages } = run.checkpoint;
  const before = (lastStep(messages)?.calls ?? []).slice(0, index);
  if (before.some(({ args }) => taskIdIn(args) === taskId))
    return busy(`Another call goes on with the task "${taskId}" at this moment.`);
  const task = findTask(messages, taskId);
  if (task === undefined) return notFound(`There is no task "${taskId}" in this conversation.`);
  if (task.agent !== agent) return notFound(`The task "${taskId}" is one of the sub-agent "${task.agent}".`);
  if ((await loadCheckpoint(run.store, childId)) !== null) return noEarlierTask;
  const said = task.record === undefined ? undefined : await readTask(run, task.record);
  return said === undefined
    ? notFound(`What was said in the task "${taskId}" is not kept any more.`)
    : { type: 'found', messages: said };
}

function busy(why: string): EarlierTask {
  return { type: 'refused', code: 'LOUSHO_SUBAGENT_TASK_BUSY', why };
}

function notFound(why: string): EarlierTask {
  return { type: 'refused', code: 'LOUSHO_SUBAGENT_TASK_NOT_FOUND', why };
}

/* ── The run ── */

function childOrder(
  run: Run,
  { call, index }: OpenCall,
  args: TaskArgs,
  said: readonly Message[] | undefined,
): RunOrder {
  const childId = run.childId(index);
  const subagent = run.agent.subagents.get(args.agent);
  if (subagent === undefined) throw new Error(`Invariant: there is no sub-agent ${args.agent}`);
  const { checkpoint, engine, sessionId, approvals, store, isEphemeral, isStreaming } = run;
  const { toolCallId } = call;
  const place = placeOf(run, { call, index }, childId, args.agent);
  const decided = checkpoint.approvals.filter(
    (approval) => approval.childId === childId && approval.decision !== undefined,
  );
  return {
    checkpointId: childId,
    sessionId: sessionId === undefined ? undefined : `${sessionId}/${toolCallId}`,
    request: {
      type: 'task',
      messages: inputMessages(args.prompt),
      decided,
      before: said === undefined ? undefined : { messages: said, inputIds: [] },
    },
    ...{ store, isEphemeral, approvals, isStreaming },
    source: subagent.source,
    engine: subagent.engine(engine),
    metadata: checkpoint.metadata,
    principal: checkpoint.principal,
    events: run.events.ofTask(place.subagentPath, toolCallId),
    input: new RunInput(),
    stop: run.stop.inside(),
    whenBusy: 'wait',
    // Of a dead process: its lease lasts for two periods after its last renewal, which may be a heartbeat later than that of the lead's.
    leaseWaitMs: engine.lease === undefined ? 0 : 2 * engine.lease.ttlMs + engine.lease.heartbeatMs,
    task: place,
  };
}

function placeOf(run: Run, { call, index }: OpenCall, childId: string, name: string): TaskPlace {
  return {
    subagentPath: [...(run.task?.subagentPath ?? []), name],
    approvalId: run.approvalId(index),
    businessState: run.businessState,
    calledBy: () => ({ segmentId: run.segmentId, toolCallId: call.toolCallId }),
    async spent(usage) {
      // In the tick in which the sub-agent itself is saved: stores that can write both at once.
      run.fold({ type: 'childSpent', child: { checkpointId: childId, usage } });
      await Promise.all([run.writer.save(), run.task?.spent(asDelegated(knownSpend(run.checkpoint)))]);
    },
    limitsLeft: () => limitsLeft(run, childId),
    async ensureLeadHeld() {
      await run.ensureHeld();
      await run.task?.ensureLeadHeld();
    },
  };
}
