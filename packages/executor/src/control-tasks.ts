/** `agent_status`, `agent_await`, `agent_cancel`: a call of one of them, over the background tasks of its run. */
import { deepFreeze, type JsonObject, type StoredBackgroundTask, type ToolCallPart } from '@lousho/contract';
import type { Rest } from './background-tasks.ts';
import type { OpenCall } from './next-action.ts';
import type { Run } from './run.ts';
import type { TaskControl } from './task-control-tools.ts';
import { over, shownTasks, taskChildId, taskWithId } from './task-ledger.ts';
import { findTask, metadataOfAll, refOf, type TaskRef } from './task-records.ts';
import { outcomeOf, outcomeOfError, type TaskOutcome } from './task-result.ts';
import { failureResult, valueResult } from './tool-result.ts';

/** Never rejects. */
export async function controlTasks(run: Run, { call }: OpenCall, control: TaskControl): Promise<TaskOutcome> {
  try {
    switch (control.type) {
      case 'status':
        return showTasks(run, call, control.taskIds);
      case 'await':
        return await awaitTasks(run, call, control.taskIds);
      case 'cancel':
        return await cancelTask(run, call, control.taskId);
    }
  } catch (error) {
    return { type: 'propagated', error };
  }
}

/* ── Status ── */

function showTasks(run: Run, call: ToolCallPart, taskIds?: readonly string[]): TaskOutcome {
  const unknown = firstUnknown(run, taskIds ?? []);
  if (unknown !== undefined) return notFound(run, call, unknown);
  const all = run.background.list();
  const wanted = taskIds === undefined ? all : all.filter(({ taskId }) => taskIds.includes(taskId));
  return value(call, { tasks: shownTasks(wanted).map((task) => ({ ...task })) });
}

/* ── Await ── */

/** All answers together. While a call inside one of them is for a person, the call waits: one task after the other. */
async function awaitTasks(run: Run, call: ToolCallPart, taskIds: readonly string[]): Promise<TaskOutcome> {
  const unknown = firstUnknown(run, taskIds);
  if (unknown !== undefined) return notFound(run, call, unknown);
  const tasks = [...new Set(taskIds)].flatMap((id) => taskWithId(run.checkpoint, id) ?? []);
  const rests = await Promise.all(
    tasks.map(async (task) => (task.isOver ? undefined : run.background.join(task))),
  );
  const answers: Answer[] = [];
  let waits: TaskOutcome | undefined;
  for (const [index, task] of tasks.entries()) {
    const rest = rests[index];
    const answer = rest === undefined ? givenBefore(task) : await answerOf(run, call, task, rest);
    if (answer.type === 'answer') answers.push(answer);
    else if (answer.type !== 'waits') return answer;
    else waits ??= answer;
  }
  return waits ?? together(call, answers);
}

interface Answer {
  readonly type: 'answer';
  readonly said: JsonObject;
  readonly ref?: TaskRef | undefined;
  readonly ended?: StoredBackgroundTask;
  readonly businessState?: Extract<TaskOutcome, { type: 'result' }>['businessState'];
}

function givenBefore({ taskId, agent, status }: StoredBackgroundTask): Answer {
  const error =
    status === 'cancelled' ? 'The task was cancelled.' : 'The answer of this task was given before.';
  return { type: 'answer', said: { taskId, agent, status, error } };
}

async function answerOf(
  run: Run,
  call: ToolCallPart,
  task: StoredBackgroundTask,
  rest: Rest,
): Promise<Answer | Exclude<TaskOutcome, { type: 'result' }>> {
  const { taskId, agent } = task;
  const isAborted = run.stop.current?.type === 'abort';
  if (rest.type === 'suspended' && !isAborted) return { type: 'open' };
  if (rest.type === 'cancelled' || rest.type === 'suspended') {
    const ended = over(task, 'cancelled');
    return { ...givenBefore(ended), ended };
  }
  const childId = taskChildId(run.checkpointId, run.checkpoint, task);
  const about = { call, childId, agent, taskId };
  const outcome =
    rest.type === 'result'
      ? await outcomeOf(run, rest.result, about)
      : await outcomeOfError(run, rest.error, about);
  if (outcome.type !== 'result') return outcome;
  const { result, businessState } = outcome;
  const { kind } = result;
  const status = kind === undefined ? 'finished' : kind === 'cancelled' ? 'cancelled' : 'failed';
  const said = kind === undefined ? { answer: result.result } : (result.result as JsonObject);
  const known = taskWithId(run.checkpoint, taskId) ?? task;
  return {
    type: 'answer',
    said: { taskId, agent, status, ...said },
    ...{ ref: refOf(result), ended: over(known, status), businessState },
  };
}

function together(call: ToolCallPart, answers: readonly Answer[]): TaskOutcome {
  const refs = answers.flatMap(({ ref }) => ref ?? []);
  const states = answers.flatMap(({ businessState }) => (businessState === undefined ? [] : [businessState]));
  return {
    ...value(call, { tasks: answers.map(({ said }) => said) }, refs),
    ended: answers.flatMap(({ ended }) => ended ?? []),
    // As with calls of one step: what is recorded last stands.
    businessState: states.at(-1),
  };
}

/* ── Cancel ── */

async function cancelTask(run: Run, call: ToolCallPart, taskId: string): Promise<TaskOutcome> {
  const unknown = firstUnknown(run, [taskId]);
  const task = taskWithId(run.checkpoint, taskId);
  if (unknown !== undefined || task === undefined) return notFound(run, call, taskId);
  if (task.isOver) return alreadyOver(call, task, task.status === 'cancelled');
  if (!(await run.background.cancel(task))) return alreadyOver(call, task, false);
  const known = taskWithId(run.checkpoint, taskId) ?? task;
  return {
    ...value(call, { taskId, agent: task.agent, status: 'cancelled' }),
    ended: [over(known, 'cancelled')],
  };
}

function alreadyOver(
  call: ToolCallPart,
  { taskId }: StoredBackgroundTask,
  isCancelled: boolean,
): TaskOutcome {
  const error = isCancelled
    ? `The task "${taskId}" was cancelled before.`
    : `The task "${taskId}" has come to its end. Nothing is left to cancel.`;
  return refusal(call, 'LOUSHO_SUBAGENT_TASK_OVER', error);
}

/* ── What they have in common ── */

/** A task is known from the step after its call on: before that nobody can have read its id. */
function firstUnknown(run: Run, taskIds: readonly string[]): string | undefined {
  const { checkpoint } = run;
  return taskIds.find((id) => {
    const task = taskWithId(checkpoint, id);
    return task === undefined || task.step === checkpoint.stepIndex;
  });
}

function notFound(run: Run, call: ToolCallPart, taskId: string): TaskOutcome {
  const { checkpoint } = run;
  const given = taskWithId(checkpoint, taskId);
  const other = findTask(checkpoint.messages, taskId);
  const why =
    given !== undefined
      ? 'its call is in this same response; wait for its result first.'
      : other === undefined || other.isBackground
        ? 'this run gave none of that id.'
        : 'it was not given in the background: its answer is the result of its call.';
  return refusal(
    call,
    'LOUSHO_SUBAGENT_TASK_NOT_FOUND',
    `There is no task "${taskId}" in the background: ${why}`,
  );
}

function refusal(call: ToolCallPart, code: string, error: string): TaskOutcome {
  return { type: 'result', result: failureResult(call, 'execution', { error, code }) };
}

function value(
  call: ToolCallPart,
  said: JsonObject,
  refs: readonly TaskRef[] = [],
): Extract<TaskOutcome, { type: 'result' }> {
  const metadata = refs.length === 0 ? undefined : { providerMetadata: metadataOfAll(refs) };
  return { type: 'result', result: deepFreeze({ ...valueResult(call, said), ...metadata }) };
}
