/** The loop. Every branch of a run is visible in `driveRun`; the state is the checkpoint, and there is one resume path: this one. */
import {
  SDKError,
  assertNever,
  ownCalls,
  storedError,
  textOf,
  type Checkpoint,
  type ExecutionResult,
} from '@lousho/contract';
import { askRemote } from './ask-remote.ts';
import { callModel, hookContext, type ModelOutcome } from './call-model.ts';
import { removeChildren } from './child-leftovers.ts';
import type { Outcome } from './fold.ts';
import { asDelegated, knownSpend } from './next-action.ts';
import type { Run } from './run.ts';
import { errorEvent } from './run-events.ts';
import { abortedResult, pausedOrFinished } from './run-result.ts';
import type { Stop } from './run-stop.ts';
import { hopelessResults, reportResult, runTools } from './run-tools.ts';
import { StepEvents } from './step-events.ts';

/**
 * Until the run is finished, paused, aborted or failed.
 * @throws what rejects the run; its last checkpoint stands, with the error noted when it was a failure
 */
export async function executeRun(run: Run): Promise<ExecutionResult> {
  const { telemetry } = run.engine;
  const work = (): Promise<ExecutionResult> => driveOrFail(run);
  return telemetry.segment === undefined ? work() : telemetry.segment(run.segmentInfo(), work);
}

async function driveOrFail(run: Run): Promise<ExecutionResult> {
  const steps = new StepEvents(run.events);
  try {
    const result = await driveRun(run, steps);
    for (const hooks of run.engine.hooks) await hooks.onFinish?.(hookContext(run), result);
    return result;
  } catch (error) {
    steps.end('error');
    await run.background.suspend();
    throw await noteFailure(run, error);
  } finally {
    run.input.close();
    // Input that was taken is stored, or refused to whoever gave it, before the lease goes and a shutdown is over.
    await run.writer.idle();
  }
}

async function driveRun(run: Run, steps: StepEvents): Promise<ExecutionResult> {
  for (;;) {
    const { checkpoint, stop } = run;
    if (stop.current !== undefined && !isSettled(checkpoint)) return await stopRun(run, stop.current, steps);
    const action = run.nextAction();
    switch (action.type) {
      case 'callModel':
        run.background.goOn();
        steps.begin(checkpoint.stepIndex + 1);
        if (run.agent.remote === undefined) await takeResponse(run, await callModel(run), steps);
        else await askRemote(run, run.agent.remote, steps);
        break;
      case 'runTools':
        run.background.goOn();
        steps.begin(checkpoint.stepIndex);
        await runTools(run, action.calls);
        if (run.openCalls().length === 0) steps.end();
        break;
      case 'waitForApproval':
        run.input.close();
        steps.end('awaiting-approval');
        return pausedOrFinished(
          run.checkpoint as Extract<typeof checkpoint, { status: 'awaiting-approval' }>,
          run.sessionId,
        );
      case 'joinInput':
        run.fold({ type: 'inputJoined' });
        reportApplied(run);
        break;
      case 'endTasks':
        run.background.goOn();
        await run.background.end();
        break;
      case 'finish':
        run.fold({ type: 'finished', finishReason: run.endOf(action.finishReason), limit: action.limit });
        // Held input starts a run of its own: one save, so that no crash leaves a finished run with input that nobody looks at.
        if (checkpoint.heldInput.length === 0) await finishRun(run);
        break;
      case 'startNextRun':
        run.events.belongTo(
          run.fold({ type: 'nextRun', runId: run.engine.ports.ids.random(), isTurn: run.isTurn }).runId,
          run.sessionId,
        );
        reportApplied(run);
        break;
      case 'done':
        await removeChildren(run, [...run.leftovers]);
        return pausedOrFinished(
          run.checkpoint as Extract<typeof checkpoint, { status: 'finished' }>,
          run.sessionId,
        );
      default:
        return assertNever(action);
    }
  }
}

/** Held input is in the transcript now: the next step reads it. */
function reportApplied(run: Run): void {
  const step = run.checkpoint.stepIndex + 1;
  for (const id of run.input.takeHeld()) run.events.emit('input.applied', { id, step });
}

/** It is so in the store, too: a stop that comes now comes too late. */
function isSettled({ status, heldInput }: Checkpoint): boolean {
  return status === 'awaiting-approval' || (status === 'finished' && heldInput.length === 0);
}

async function finishRun(run: Run): Promise<void> {
  // Before the save, in the same tick as the fold: input that comes later is told that the run is over.
  run.input.close();
  await run.writer.save();
}

async function takeResponse(run: Run, outcome: ModelOutcome, steps: StepEvents): Promise<void> {
  switch (outcome.type) {
    case 'abandoned':
      return;
    case 'dropped': {
      const isSteered = run.stop.current === undefined;
      run.fold({
        type: 'modelDropped',
        modelId: outcome.modelId,
        usage: outcome.usage,
        countsAsStep: isSteered,
      });
      run.cutReply = isSteered ? '' : outcome.text;
      if (isSteered) steps.end('steered');
      // The lead may be all that can still be stored of it.
      await run.task?.spent(asDelegated(knownSpend(run.checkpoint)));
      return;
    }
    case 'response': {
      const { message, finishReason, modelId, usage } = outcome;
      const results = hopelessResults(run, ownCalls(message));
      const { status } = run.fold({ type: 'modelResponse', message, finishReason, modelId, usage, results });
      run.lastFinishReason = finishReason;
      if (status === 'finished') run.input.close();
      const text = textOf(message);
      if (text !== '') run.events.emit('text.done', { text });
      for (const result of results) reportResult(run, result, 0);
      steps.responded(finishReason, usage);
      for (const hooks of run.engine.hooks) await hooks.afterModel?.(hookContext(run), outcome.response);
      const saving = run.writer.save();
      if (run.task === undefined) await saving;
      else await Promise.all([saving, run.task.spent(asDelegated(knownSpend(run.checkpoint)))]);
      if (run.openCalls().length === 0) steps.end();
    }
  }
}

async function stopRun(run: Run, stop: Stop, steps: StepEvents): Promise<ExecutionResult> {
  switch (stop.type) {
    case 'lease-lost':
      throw stop.error;
    case 'shutdown':
      // What settled is stored; nothing is recorded as cancelled, and no attempt is counted.
      throw new SDKError('LOUSHO_SHUTDOWN', run.sessionId === undefined ? {} : { sessionId: run.sessionId });
    case 'abort':
      // Calls that did not begin never will.
      if (run.openCalls().length > 0) await runTools(run, run.openCalls());
      await run.background.cancelAll();
      run.input.close();
      steps.end('aborted');
      await run.commit({ type: 'aborted', cutReply: run.isTurn ? run.cutReply : '' });
      await removeChildren(run, [...run.leftovers]);
      return abortedResult(run.checkpoint, run.sessionId, stop.reason);
    default:
      return assertNever(stop);
  }
}

/** The error to reject with. A failure is noted in the stored run while it is unfinished; a lost lease and a shutdown are no failures. */
async function noteFailure(run: Run, error: unknown): Promise<unknown> {
  const { stop } = run;
  if (stop.current?.type === 'lease-lost') return stop.current.error;
  if (!isUnfinished(run)) return error;
  if (stop.current?.type === 'shutdown') {
    if (wasCounted(run.checkpoint)) await note(run, { type: 'suspended' }, error);
    return error;
  }
  const failedAt = new Date(run.engine.ports.clock.wallMs()).toISOString();
  await note(run, { type: 'failed', error: { ...storedError(error), failedAt } }, error);
  return error;
}

async function note(run: Run, outcome: Outcome, error: unknown): Promise<void> {
  try {
    await run.commit(outcome);
  } catch (saveError) {
    // The store does not take it: the caller hears of what went wrong first.
    if (saveError !== error) run.events.emit('error', { error: errorEvent(saveError) });
  }
}

/** It was started again, and has not got anywhere since. */
function wasCounted(checkpoint: Checkpoint): boolean {
  return checkpoint.status === 'in-progress' && checkpoint.startsWithoutProgress !== undefined;
}

/** A run that fails before its first response leaves the store as it was. */
function isUnfinished({ checkpoint, writer: { stored } }: Run): boolean {
  return stored === undefined ? checkpoint.stepIndex > 0 : stored.status === 'in-progress';
}
