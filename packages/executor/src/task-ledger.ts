/** Pure: the background tasks of a run as its checkpoint names them, and the calls that gave them. */
import {
  answeredCalls,
  childCheckpointId,
  lastStep,
  type AnsweredCall,
  type BackgroundTask,
  type Checkpoint,
  type DelegatedInFlight,
  type StoredBackgroundTask,
  type ToolCallPart,
} from '@lousho/contract';
import { refOf, type TaskRef } from './task-records.ts';

/** Those whose answers nobody has yet, in the order of their calls. */
export function openTasks({
  backgroundTasks = [],
}: Pick<Checkpoint, 'backgroundTasks'>): readonly StoredBackgroundTask[] {
  return backgroundTasks.filter(({ isOver }) => isOver !== true).sort(byPlace);
}

function byPlace(a: StoredBackgroundTask, b: StoredBackgroundTask): number {
  return a.step - b.step || a.index - b.index;
}

type Place = Pick<StoredBackgroundTask, 'step' | 'index'>;

export function isAt(task: Place, { step, index }: Place): boolean {
  return task.step === step && task.index === index;
}

/** Where its sub-agent is stored. */
export function taskChildId(
  checkpointId: string,
  { runId }: Pick<Checkpoint, 'runId'>,
  { step, index }: Place,
): string {
  return childCheckpointId(checkpointId, { runId, step, index });
}

/** The last one with this id: a task that is gone on with has its id again, and its earlier run is over by then. */
export function taskWithId(
  { backgroundTasks = [] }: Pick<Checkpoint, 'backgroundTasks'>,
  taskId: string,
): StoredBackgroundTask | undefined {
  return backgroundTasks.findLast((task) => task.taskId === taskId);
}

/** New ones behind the others; the rest in their places. */
export function withTasks(
  known: readonly StoredBackgroundTask[],
  changed: readonly StoredBackgroundTask[],
): readonly StoredBackgroundTask[] {
  const isChanged = (task: StoredBackgroundTask) => changed.find((one) => isAt(one, task));
  const added = changed.filter((task) => !known.some((one) => isAt(one, task)));
  return [...known.map((task) => isChanged(task) ?? task), ...added];
}

/** Over: what it had not come to by itself it does not come to any more. */
export function over(
  { approvalId: _approvalId, toolName: _toolName, ...task }: StoredBackgroundTask,
  status: BackgroundTask['status'] = task.status === 'finished' || task.status === 'failed'
    ? task.status
    : 'cancelled',
): StoredBackgroundTask {
  return { ...task, status, isOver: true };
}

/** What is recorded of tasks that are over: what they spent is their lead's. Once: two calls of one step may wait for one task. */
export function endedFacts(
  { checkpointId, checkpoint }: { readonly checkpointId: string; readonly checkpoint: Checkpoint },
  ended: readonly StoredBackgroundTask[],
): { readonly tasks: readonly StoredBackgroundTask[]; readonly delegated: readonly DelegatedInFlight[] } {
  const open = openTasks(checkpoint);
  const tasks = ended.filter((task) => open.some((known) => isAt(known, task)));
  const ids = tasks.map((task) => taskChildId(checkpointId, checkpoint, task));
  return {
    tasks,
    delegated: checkpoint.delegatedInFlight.filter((child) => ids.includes(child.checkpointId)),
  };
}

/** As callers and models see them. */
export function shownTasks(
  tasks: readonly (BackgroundTask & Partial<StoredBackgroundTask>)[],
): readonly BackgroundTask[] {
  return tasks.map(({ step: _step, index: _index, isOver: _isOver, ...task }) => task);
}

/* ── The call that gave it ── */

export interface GivenTask {
  readonly call: ToolCallPart;
  readonly ref: TaskRef;
}

/** Named by its result, which is in the transcript or waits for its place there. `undefined`: a fork has another transcript. */
export function givenTask(checkpoint: Checkpoint, { taskId }: BackgroundTask): GivenTask | undefined {
  let given: GivenTask | undefined;
  for (const { call, result } of recordedCalls(checkpoint)) {
    const ref = refOf(result);
    if (ref?.isBackground === true && ref.taskId === taskId) given = { call, ref };
  }
  return given;
}

function* recordedCalls({ messages, settledResults }: Checkpoint): Iterable<AnsweredCall> {
  yield* answeredCalls(messages);
  const calls = lastStep(messages)?.calls ?? [];
  for (const result of settledResults) {
    const call = calls.find(({ toolCallId }) => toolCallId === result.toolCallId);
    if (call !== undefined) yield { call, result };
  }
}
