/**
 * A remote agent's next answer, in the place of a model's: its end, or calls that wait for a person there. It is asked under ids that follow
 * from where its run is stored, so whoever asks again, after whatever crash, asks for the same work.
 */
import {
  SDKError,
  deepFreeze,
  emptyUsage,
  isMessage,
  textOf,
  toJson,
  type AssistantMessage,
  type RemoteAgent,
  type RemoteAnswer,
  type RemoteTask,
} from '@lousho/contract';
import { withUsableIds } from './accept-response.ts';
import { sha256 } from './agent-fingerprint.ts';
import { asDelegated, knownSpend } from './next-action.ts';
import { decisionsIn, inRemoteSession, remoteCallPart, remoteSessionIn } from './remote-calls.ts';
import type { Run } from './run.ts';
import { errorEvent } from './run-events.ts';
import { givenUp, unlessAborted } from './run-stop.ts';
import type { StepEvents } from './step-events.ts';

/** Resolves when the answer is stored, or the run must stop. @throws LOUSHO_REMOTE_FAILED, what the store throws */
export async function askRemote(run: Run, remote: RemoteAgent, steps: StepEvents): Promise<void> {
  const task = await taskOf(run);
  await run.ensureHeld();
  if (run.stop.current !== undefined) return;
  // 1. The remote works. Crash behind it: it is asked again, and says the same.
  const answer = await unlessAborted(task.signal, remote.work(task));
  if (answer === givenUp) return stopRemote(run, remote, task);
  if (answer.type === 'stopped') {
    run.fold({ type: 'remoteStopped', usage: answer.usage });
    return run.stop.abort(new Error('The remote agent was stopped.'));
  }
  // 2. What it came to. Only from here on it counts what was decided as told.
  await takeAnswer(run, answer, task.sessionId, steps);
}

async function taskOf(run: Run): Promise<RemoteTask> {
  const { checkpoint, checkpointId, stop } = run;
  const { messages, runInput, stepIndex } = checkpoint;
  const begunHere = await keyOf(checkpointId);
  const wasThere = runInput.start > 0;
  const sessionId = remoteSessionIn(messages) ?? (wasThere ? undefined : begunHere);
  if (sessionId === undefined)
    throw failed(run, 'does not know what was said in this task: it was not said there');
  return {
    sessionId,
    inputId: begunHere,
    prompt: messages
      .slice(runInput.start, runInput.start + runInput.count)
      .map(textOf)
      .join('\n'),
    knownThere: stepIndex > 0 ? 'task' : wasThere ? 'conversation' : 'nothing',
    decisions: decisionsIn(messages.slice(runInput.start)),
    // At the first reason to stop, a shutdown too: the remote works on, and whoever goes on asks again.
    signal: stop.requested,
    clock: stop.clock,
    async pause(delayMs, attempt, why) {
      run.events.emit('provider.retry', { attempt, delayMs, error: errorEvent(why) });
      await run.sleep(delayMs);
    },
  };
}

/** Below the id of the lead for whoever looks at the remote; the rest keeps apart all that was ever given to it. */
async function keyOf(checkpointId: string): Promise<string> {
  const [leadId = ''] = checkpointId.split('.sub-');
  const readable = leadId.replaceAll(/[^A-Za-z0-9_-]/g, '-').slice(0, 80);
  return `${readable}-sub-${(await sha256(checkpointId)).slice(0, 32)}`;
}

async function takeAnswer(
  run: Run,
  answer: Exclude<RemoteAnswer, { type: 'stopped' }>,
  sessionId: string,
  steps: StepEvents,
): Promise<void> {
  const message = messageOf(run, answer, sessionId);
  if (answer.type === 'ended') {
    const { finishReason, limit, usage } = answer;
    const end = { finishReason, ...(limit === undefined ? undefined : { limit }) };
    run.fold({ type: 'remoteAnswer', message, end, usage });
    run.input.close();
    if (answer.text !== '') run.events.emit('text.done', { text: answer.text });
    steps.responded(finishReason === 'max-steps' || finishReason === 'limit' ? 'other' : finishReason, usage);
  } else {
    // What it has spent is said when it ends.
    run.fold({ type: 'remoteAnswer', message, usage: nothing });
    steps.responded('tool-calls', nothing);
  }
  await Promise.all([run.writer.save(), run.task?.spent(asDelegated(knownSpend(run.checkpoint)))]);
  if (answer.type === 'ended') steps.end();
}

const { byModel: _byModel, ...nothing } = emptyUsage;

function messageOf(
  run: Run,
  answer: Exclude<RemoteAnswer, { type: 'stopped' }>,
  sessionId: string,
): AssistantMessage {
  const content =
    answer.type === 'ended'
      ? [{ type: 'text' as const, text: answer.text }]
      : withUsableIds(answer.approvals.map(remoteCallPart));
  const json = toJson({ role: 'assistant', content, providerMetadata: inRemoteSession(sessionId) });
  if (!json.ok || !isMessage(json.json) || content.length === 0)
    throw failed(run, 'gave an answer that is none');
  return deepFreeze(json.json as unknown as AssistantMessage);
}

/** Nobody waits for it any more. It is stopped when a person says so; otherwise it works on, and whoever resumes the run asks again. */
async function stopRemote(run: Run, remote: RemoteAgent, task: RemoteTask): Promise<void> {
  if (run.stop.current?.type !== 'abort') return;
  const { abandoned } = run.stop;
  const usage = await unlessAborted(abandoned, spentWhenStopped(remote, { ...task, signal: abandoned }));
  if (usage !== givenUp && usage !== undefined) run.fold({ type: 'remoteStopped', usage });
}

async function spentWhenStopped(remote: RemoteAgent, task: RemoteTask) {
  try {
    return await remote.stop(task);
  } catch {
    // It does not hear it, and works on: the run here is stopped all the same.
    return undefined;
  }
}

function failed(run: Run, reason: string): SDKError {
  return new SDKError('LOUSHO_REMOTE_FAILED', { agent: run.agent.name, reason });
}
