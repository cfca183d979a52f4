/** A `task` call: the run of its sub-agent, whether that is new, interrupted, paused or finished. One loop executes it, as it does its lead. */
import { SDKError, isCheckpointId, lastStep, type Message, type ToolCallPart } from '@lousho/contract';
import { inputMessages } from './accept-input.ts';
import { limitsLeft } from './limits-left.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import { asDelegated, knownSpend, type OpenCall } from './next-action.ts';
import type { Run } from './run.ts';
import { RunInput } from './run-input.ts';
import type { RunOrder } from './run-order.ts';
import type { RunStop } from './run-stop.ts';
import { openTasks } from './task-ledger.ts';
import type { TaskPlace } from './task-place.ts';
import { findTask, nextTaskId, readTask, taskIdIn } from './task-records.ts';
import { outcomeOf, outcomeOfError, refused, type TaskFacts, type TaskOutcome } from './task-result.ts';
import type { TaskArgs } from './task-tool.ts';

/** Never rejects. */
export async function runTask(run: Run, open: OpenCall, args: TaskArgs): Promise<TaskOutcome> {
  const { call, index } = open;
  const about = taskFacts(run, open, args);
  const { childId } = about;
  if (!isCheckpointId(childId))
    return refused(about, 'The id of the run is too long for a sub-agent this deep.');
  try {
    await requireVisible(run, childId);
    const earlier = args.taskId === undefined ? noEarlierTask : await earlierTask(run, open, about);
    if (earlier.type === 'refused') return refused(about, earlier.why, earlier.code);
    if (args.background === true) return run.background.give(about, open, earlier.record);
    const said = await wordsOf(run, about, earlier.record);
    if (said.type === 'refused') return refused(about, said.why, said.code);
    const { stepIndex: step } = run.checkpoint;
    const place = { call, index, step, args, stop: run.stop.inside(), isCountedLive: true };
    const result = await run.executeChild(childOrder(run, { ...place, said: said.messages }));
    if (result === null) throw new Error(`Invariant: the sub-agent ${childId} gave no result`);
    return await outcomeOf(run, result, about);
  } catch (error) {
    return outcomeOfError(run, error, about);
  }
}

function taskFacts(run: Run, { call, index }: OpenCall, args: TaskArgs): TaskFacts {
  const { agent, taskId = nextTaskId(run.checkpoint.messages, call.toolCallId) } = args;
  return { call, childId: run.childId(index), agent, taskId };
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

interface Refusal {
  readonly type: 'refused';
  readonly code: string;
  readonly why: string;
}

/** `record`: where is kept what was said in it. Absent for a task that is new. */
type EarlierTask = { readonly type: 'found'; readonly record?: string | undefined } | Refusal;

const noEarlierTask: EarlierTask = { type: 'found' };

async function earlierTask(run: Run, { index }: OpenCall, about: TaskFacts): Promise<EarlierTask> {
  const { taskId, agent, childId } = about;
  const { checkpoint } = run;
  const { messages } = checkpoint;
  const before = (lastStep(messages)?.calls ?? []).slice(0, index);
  const isOpen = openTasks(checkpoint).some((task) => task.taskId === taskId);
  if (isOpen || before.some(({ args }) => taskIdIn(args) === taskId))
    return busy(`Another call goes on with the task "${taskId}" at this moment.`);
  const task = findTask(messages, taskId);
  if (task === undefined) return notFound(`There is no task "${taskId}" in this conversation.`);
  if (task.agent !== agent) return notFound(`The task "${taskId}" is one of the sub-agent "${task.agent}".`);
  if (task.record !== undefined) return { type: 'found', record: task.record };
  // It has begun, and knows what was said.
  return (await loadCheckpoint(run.store, childId)) === null ? forgotten(taskId) : noEarlierTask;
}

/** What was said in the task that it goes on with; `undefined`: nothing, or its run is there already and has it. */
export async function wordsOf(
  run: Run,
  { childId, taskId }: Pick<TaskFacts, 'childId' | 'taskId'>,
  record: string | undefined,
): Promise<{ readonly type: 'known'; readonly messages: readonly Message[] | undefined } | Refusal> {
  if (record === undefined || (await loadCheckpoint(run.store, childId)) !== null)
    return { type: 'known', messages: undefined };
  const messages = await readTask(run, record);
  return messages === undefined ? forgotten(taskId) : { type: 'known', messages };
}

function forgotten(taskId: string): Refusal {
  return notFound(`What was said in the task "${taskId}" is not kept any more.`);
}

function busy(why: string): Refusal {
  return { type: 'refused', code: 'LOUSHO_SUBAGENT_TASK_BUSY', why };
}

function notFound(why: string): Refusal {
  return { type: 'refused', code: 'LOUSHO_SUBAGENT_TASK_NOT_FOUND', why };
}

/* ── The run ── */

/** A call of a sub-agent, with how its run is executed. */
export interface ChildCall {
  readonly call: ToolCallPart;
  /** The place of the call. */
  readonly step: number;
  readonly index: number;
  readonly args: TaskArgs;
  /** Before it, in the task that it goes on with. */
  readonly said: readonly Message[] | undefined;
  readonly stop: RunStop;
  /** Whether the lead counts what it spends as it goes, not only when it comes to rest. */
  readonly isCountedLive: boolean;
}

export function childOrder(run: Run, child: ChildCall): RunOrder {
  const { call, args, said, stop } = child;
  const childId = run.childId(child.index, child.step);
  const subagent = run.agent.subagents.get(args.agent);
  if (subagent === undefined) throw new Error(`Invariant: there is no sub-agent ${args.agent}`);
  const { checkpoint, engine, sessionId, approvals, store, isEphemeral, isStreaming } = run;
  const { toolCallId } = call;
  const place = placeOf(run, child, childId);
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
    stop,
    whenBusy: 'wait',
    // Of a dead process: its lease lasts for two periods after its last renewal, which may be a heartbeat later than that of the lead's.
    leaseWaitMs: engine.lease === undefined ? 0 : 2 * engine.lease.ttlMs + engine.lease.heartbeatMs,
    task: place,
  };
}

function placeOf(
  run: Run,
  { call, step, index, args, isCountedLive }: ChildCall,
  childId: string,
): TaskPlace {
  return {
    subagentPath: [...(run.task?.subagentPath ?? []), args.agent],
    approvalId: run.approvalId(index, step),
    businessState: run.businessState,
    calledBy: () => ({ segmentId: run.segmentId, toolCallId: call.toolCallId }),
    async spent(usage) {
      if (!isCountedLive) return;
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
