import {
  answeredCalls,
  isDeepFrozen,
  jsonEqual,
  lastStep,
  type Checkpoint,
  type JsonValue,
  type StoredError,
} from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { fold, type Outcome, type TakeoverFacts } from '../src/fold.ts';
import { openCalls, undecidedApprovals } from '../src/next-action.ts';
import {
  approvalOf,
  assistant,
  call,
  finished,
  inProgress,
  no,
  oneCall,
  result,
  tool,
  user,
  waiting,
  yes,
} from './checkpoints.ts';
import { fc } from './properties.ts';
import { randomHistory, statesOf, transitionsOf } from './random-runs.ts';
import { need, resultIds, roles } from './support.ts';

const ask = [user('go'), assistant('', call('a'), call('b'), call('c'))];
const down: StoredError = { name: 'Error', message: 'down', retryable: true };
const failed = inProgress({
  messages: ask,
  stepIndex: 1,
  lastError: down,
  attempts: 2,
  startsWithoutProgress: 3,
});

const response = (
  message: ReturnType<typeof assistant>,
  more: Partial<Extract<Outcome, { type: 'modelResponse' }>> = {},
): Outcome => ({
  type: 'modelResponse',
  message,
  finishReason: 'stop',
  modelId: 'mock',
  usage: oneCall,
  results: [],
  ...more,
});

describe('a model response', () => {
  it('with calls leaves the run in progress, one step further', () => {
    const next = fold(inProgress(), response(assistant('', call('a')), { finishReason: 'tool-calls' }));
    expect(next).toMatchObject({ status: 'in-progress', stepIndex: 1, usage: { modelCalls: 1 } });
    expect(roles(next.messages)).toBe('user assistant');
  });
  it('without calls finishes the run in the same save', () => {
    const next = fold(inProgress(), response(assistant('done'), { finishReason: 'length' }));
    expect(next).toMatchObject({ status: 'finished', finishReason: 'length' });
  });
  it('without calls never finishes with the reason "tool-calls"', () => {
    const next = fold(inProgress(), response(assistant('done'), { finishReason: 'tool-calls' }));
    expect(next).toMatchObject({ status: 'finished', finishReason: 'stop' });
  });
  it('does not finish the run while input waits', () => {
    const next = fold(inProgress({ heldInput: [user('and')] }), response(assistant('done')));
    expect(next).toMatchObject({ status: 'in-progress', heldInput: [user('and')] });
  });
  it('brings the results of calls that can never run, each in its place', () => {
    const hopeless = response(assistant('', call('a'), call('b'), call('c')), {
      results: [result('c'), result('a')],
    });
    const next = fold(inProgress(), hopeless);
    expect(resultIds(next.messages)).toEqual(['a']);
    expect(next.settledResults).toEqual([result('c')]);
  });
  it('starts with no marks and no approvals of the step before', () => {
    const before = inProgress({ startedToolCallIds: ['x'], approvals: [approvalOf('x')] });
    expect(fold(before, response(assistant('', call('x'))))).toMatchObject({
      startedToolCallIds: [],
      approvals: [],
    });
  });
});

describe('results', () => {
  it('go behind their response in call order, whatever order they settle in', () => {
    let state: Checkpoint = inProgress({ messages: ask, stepIndex: 1 });
    state = fold(state, { type: 'results', results: [result('c')] });
    expect([resultIds(state.messages), state.settledResults]).toEqual([[], [result('c')]]);
    state = fold(state, { type: 'results', results: [result('a')] });
    expect([resultIds(state.messages), state.settledResults]).toEqual([['a'], [result('c')]]);
    state = fold(state, { type: 'results', results: [result('b')] });
    expect([resultIds(state.messages), state.settledResults]).toEqual([['a', 'b', 'c'], []]);
  });
  it('drop lastError and attempts: they are progress', () => {
    const next = fold(failed, { type: 'results', results: [result('a')] });
    expect(next).not.toHaveProperty('lastError');
    expect(next).not.toHaveProperty('attempts');
    expect(next).not.toHaveProperty('startsWithoutProgress');
  });
  it('clear approvals and marks when the step is over, not before', () => {
    const marks = { startedToolCallIds: ['a'], approvals: [approvalOf('a', { decision: yes })] };
    const one = fold(inProgress({ messages: ask, ...marks }), { type: 'results', results: [result('a')] });
    expect(one).toMatchObject(marks);
    const all = fold(one, { type: 'results', results: [result('b'), result('c')] });
    expect(all).toMatchObject({ startedToolCallIds: [], approvals: [] });
  });
  it("carry the caller's state, also null; without one it stays", () => {
    const before = inProgress({ messages: ask, businessState: 'before' });
    const withState = fold(before, { type: 'results', results: [result('a')], businessState: null });
    const without = fold(before, { type: 'results', results: [result('a')] });
    expect([withState.businessState, without.businessState]).toEqual([null, 'before']);
  });
  it('add what sub-agents spent, and let go of what was known of them', () => {
    const before = inProgress({
      messages: ask,
      delegatedInFlight: [
        { checkpointId: 'child-1', usage: oneCall },
        { checkpointId: 'child-2', usage: oneCall },
      ],
    });
    const delegated = [{ checkpointId: 'child-1', usage: { ...oneCall, byModel: { small: oneCall } } }];
    const next = fold(before, { type: 'results', results: [result('a')], delegated });
    expect(next.delegatedInFlight.map(({ checkpointId }) => checkpointId)).toEqual(['child-2']);
    expect(next.usage).toMatchObject({ modelCalls: 1, delegated: { runs: 1, modelCalls: 1 } });
  });
  it('show the arguments that a person changed only now, so that a crash before keeps what was proposed', () => {
    const decision = { ...yes, args: { to: 'right' } };
    const before = inProgress({ messages: ask, approvals: [approvalOf('b', { decision })] });
    const other = fold(before, { type: 'results', results: [result('a')] });
    expect(callArgs(other, 'b')).toEqual({});
    const own = fold(other, { type: 'results', results: [result('b')] });
    expect(callArgs(own, 'b')).toEqual({ to: 'right' });
    expect(isDeepFrozen(own.messages)).toBe(true);
  });
  it('leave the call as it was when a person rejected it, whatever arguments came along', () => {
    const decision = { ...no, args: { to: 'right' } };
    const before = inProgress({ messages: ask, approvals: [approvalOf('a', { decision })] });
    expect(callArgs(fold(before, { type: 'results', results: [result('a')] }), 'a')).toEqual({});
  });
});

describe('a pause', () => {
  it('names the undecided in call order, whatever order they were asked in', () => {
    const paused: Outcome = { type: 'paused', approvals: [approvalOf('c'), approvalOf('a')] };
    const next = fold(inProgress({ messages: ask }), paused);
    expect(next).toMatchObject({
      status: 'awaiting-approval',
      approvalId: approvalOf('a').id,
      approvalIds: [approvalOf('a').id, approvalOf('c').id],
    });
  });
  it('asked again replaces the same approval', () => {
    const before = inProgress({ messages: ask, approvals: [approvalOf('a', { argsHash: 'old' })] });
    const next = fold(before, { type: 'paused', approvals: [approvalOf('a', { argsHash: 'new' })] });
    expect(next.approvals).toEqual([approvalOf('a', { argsHash: 'new' })]);
  });
  it('goes on waiting until the last one is decided', () => {
    const before = waiting({ messages: ask, approvals: [approvalOf('a'), approvalOf('b')] });
    const one = fold(before, { type: 'decided', approvalId: approvalOf('b').id, decision: no });
    expect(one).toMatchObject({ status: 'awaiting-approval', approvalIds: [approvalOf('a').id] });
    const all = fold(one, { type: 'decided', approvalId: approvalOf('a').id, decision: yes });
    expect(all.status).toBe('in-progress');
    expect(all).not.toHaveProperty('approvalIds');
    expect(all.approvals.map(({ decision }) => decision?.approved)).toEqual([true, false]);
  });
  it('on an interrupted call loses the mark with a yes, so that the call runs, and keeps it with a no', () => {
    const approval = approvalOf('a', { kind: 'interrupted' });
    const before = waiting({ messages: ask, startedToolCallIds: ['a', 'b'], approvals: [approval] });
    const run = fold(before, { type: 'decided', approvalId: approval.id, decision: yes });
    const leave = fold(before, { type: 'decided', approvalId: approval.id, decision: no });
    expect([run.startedToolCallIds, leave.startedToolCallIds]).toEqual([['b'], ['a', 'b']]);
  });
  it('keeps waiting while input and state come in', () => {
    const before = waiting({ messages: ask, approvals: [approvalOf('a')] });
    const input = fold(before, { type: 'input', messages: [user('and')] });
    const state = fold(input, { type: 'stateGiven', businessState: 1 });
    expect(state).toMatchObject({ status: 'awaiting-approval', heldInput: [user('and')], businessState: 1 });
  });
});

describe('input', () => {
  const input: Outcome = { type: 'input', messages: [user('and')], inputId: 'i-2' };
  it('is held back, also while calls are open', () => {
    expect(fold(inProgress({ messages: ask }), input)).toMatchObject({
      messages: ask,
      heldInput: [user('and')],
      inputIds: ['i-2'],
    });
  });
  it('keeps the order in which it came', () => {
    const held = fold(inProgress({ messages: ask, heldInput: [user('first')] }), input);
    expect(held.heldInput).toEqual([user('first'), user('and')]);
  });
  it('is no progress: a failed run stays failed until something is recorded', () => {
    expect(fold(failed, input)).toMatchObject({ lastError: down, attempts: 2 });
  });
  it('joins behind the transcript and waits no more', () => {
    const held = inProgress({ messages: [user('go')], heldInput: [user('and')] });
    const next = fold(held, { type: 'inputJoined' });
    expect([roles(next.messages), next.heldInput]).toEqual(['user user', []]);
  });
});

describe('failures', () => {
  it('count in a row and keep the latest', () => {
    const first = fold(inProgress(), { type: 'failed', error: { ...down, message: 'first' } });
    expect(first).toMatchObject({ attempts: 1, lastError: { message: 'first' } });
    expect(fold(first, { type: 'failed', error: down })).toMatchObject({ attempts: 2, lastError: down });
  });
  it('are kept when a new execution begins, which is counted beside them', () => {
    expect(fold(failed, { type: 'began' })).toMatchObject({
      lastError: down,
      attempts: 2,
      startsWithoutProgress: 4,
    });
  });
  it('never count beyond what JSON can say', () => {
    const full = inProgress({
      attempts: Number.MAX_SAFE_INTEGER,
      startsWithoutProgress: Number.MAX_SAFE_INTEGER,
    });
    expect(fold(full, { type: 'failed', error: down }).status).toBe('in-progress');
    expect(fold(full, { type: 'failed', error: down })).toMatchObject({ attempts: Number.MAX_SAFE_INTEGER });
    expect(fold(full, { type: 'began' })).toMatchObject({ startsWithoutProgress: Number.MAX_SAFE_INTEGER });
  });
  it('are no part of an abort', () => {
    const aborted = fold(failed, { type: 'aborted' });
    expect(aborted).toMatchObject({ status: 'in-progress', finishReason: 'aborted' });
    expect(aborted).not.toHaveProperty('lastError');
    expect(aborted).not.toHaveProperty('attempts');
  });
  it('leave a run that a person stopped stopped', () => {
    const aborted = inProgress({ finishReason: 'aborted' });
    expect(fold(aborted, { type: 'failed', error: down })).toMatchObject({
      finishReason: 'aborted',
      lastError: down,
    });
  });
  it('of a parked run end the parking with the next explicit start, which counts anew', () => {
    const parked = inProgress({ parkedAt: 'then', startsWithoutProgress: 10, attempts: 4, lastError: down });
    const next = fold(parked, { type: 'began' });
    expect(next).not.toHaveProperty('parkedAt');
    expect(next).toMatchObject({ startsWithoutProgress: 1, attempts: 4, lastError: down });
  });
  it('are none for a start that was lost to the store', () => {
    expect(fold(failed, { type: 'began', forgiven: 1 })).toMatchObject({ startsWithoutProgress: 3 });
    expect(fold(inProgress(), { type: 'began', forgiven: 1 })).toMatchObject({ startsWithoutProgress: 1 });
  });
  it('are one less when the process went away before there was progress', () => {
    expect(fold(failed, { type: 'suspended' })).toMatchObject({
      startsWithoutProgress: 2,
      attempts: 2,
      lastError: down,
    });
    const once = fold(inProgress({ startsWithoutProgress: 1 }), { type: 'suspended' });
    expect(once).not.toHaveProperty('startsWithoutProgress');
    expect(fold(inProgress(), { type: 'suspended' })).not.toHaveProperty('startsWithoutProgress');
  });
  it('stay beside the mark that recovery gave up, and go with progress like it', () => {
    const parked = fold(failed, { type: 'parked', parkedAt: 'now' });
    expect(parked).toMatchObject({
      status: 'in-progress',
      parkedAt: 'now',
      startsWithoutProgress: 3,
      attempts: 2,
    });
    const next = fold(parked, response(assistant('', call('a')), { finishReason: 'tool-calls' }));
    for (const field of ['parkedAt', 'startsWithoutProgress', 'attempts'])
      expect(next).not.toHaveProperty(field);
  });
});

describe('a call about to begin', () => {
  it('is marked once, however often it begins', () => {
    const once = fold(inProgress({ messages: ask }), { type: 'callsStarted', toolCallIds: ['a', 'b'] });
    const again = fold(once, { type: 'callsStarted', toolCallIds: ['b', 'c'] });
    expect(again.startedToolCallIds).toEqual(['a', 'b', 'c']);
  });
  it('is no progress', () => {
    expect(fold(failed, { type: 'callsStarted', toolCallIds: ['a'] })).toMatchObject({ attempts: 2 });
  });
});

describe('the next run of a conversation', () => {
  const over = finished({
    messages: [...ask, tool('a'), tool('b'), tool('c')],
    stepIndex: 3,
    finishReason: 'limit',
    limit: { name: 'maxModelCalls', max: 1, used: 1 },
    heldInput: [user('and'), user('then')],
    inputIds: ['i-1'],
    businessState: { kept: true },
  });
  const next = fold(over, { type: 'nextRun', runId: 'run00002' });

  it('begins with the held input, at step 0 and with nothing spent', () => {
    expect(next).toMatchObject({
      status: 'in-progress',
      runId: 'run00002',
      stepIndex: 0,
      heldInput: [],
      runInput: { start: 5, count: 2 },
      usage: { modelCalls: 0 },
    });
    expect(roles(next.messages)).toBe('user assistant tool tool tool user user');
  });
  it("keeps the conversation, its input ids and the caller's state, and nothing of the old end", () => {
    expect(next).toMatchObject({ inputIds: ['i-1'], businessState: { kept: true } });
    expect(next).not.toHaveProperty('finishReason');
    expect(next).not.toHaveProperty('limit');
  });
});

describe('the agent that resumes', () => {
  it('may change the instructions at the head; the run still knows where its input is', () => {
    const before = inProgress({ runInput: { start: 0, count: 1 } });
    const messages = [{ role: 'system' as const, content: 'Be kind.' }, ...before.messages];
    const fingerprint = { version: 1, hash: 'new', tools: {}, instructions: '' };
    const next = fold(before, { type: 'agentRefreshed', messages, fingerprint });
    expect(next).toMatchObject({ runInput: { start: 1, count: 1 }, fingerprint });
    const back = fold(next, { type: 'agentRefreshed', messages: before.messages, fingerprint });
    expect(back.runInput).toEqual({ start: 0, count: 1 });
  });
});

describe('a handoff', () => {
  const fingerprint = { version: 1, hash: 'b', model: 'm', tools: {}, instructions: 'b' };
  const handedOver = (state: Checkpoint, takeover: Partial<TakeoverFacts>): Checkpoint =>
    fold(state, {
      type: 'results',
      results: [result('a')],
      takeover: {
        activeAgent: 'billing',
        instructions: 'Count.',
        fingerprint,
        runConfig: undefined,
        ...takeover,
      },
    });
  const asked = inProgress({ messages: [user('go'), assistant('', call('a'))], stepIndex: 1 });

  it('is in the same state as the result of its call: who answers, with its instructions and its fingerprint', () => {
    const next = handedOver(asked, {});
    expect(next).toMatchObject({ activeAgent: 'billing', fingerprint, status: 'in-progress' });
    expect(roles(next.messages)).toBe('system user assistant tool');
    expect(next.messages[0]).toMatchObject({ content: 'Count.' });
    expect(next.agentName).toBe(asked.agentName);
  });

  it('moves the place of the input along with the head of the transcript', () => {
    const next = handedOver(asked, {});
    expect(next.runInput).toEqual({ start: 1, count: 1 });
    const back = handedOver(
      { ...next, messages: [...next.messages, assistant('', call('a'))] },
      {
        activeAgent: undefined,
        instructions: undefined,
      },
    );
    expect(back.runInput).toEqual({ start: 0, count: 1 });
    expect(roles(back.messages)).toBe('user assistant tool assistant tool');
    expect(back).not.toHaveProperty('activeAgent');
  });

  it('keeps the model of a dynamic target, and otherwise what was saved of the agent', () => {
    const runConfig = { ctx: { input: [], metadata: {} }, model: 'big' };
    const dynamic = inProgress({ ...asked, runConfig });
    expect(handedOver(dynamic, {}).runConfig).toEqual(runConfig);
    const small = { ...runConfig, model: 'small' };
    expect(handedOver(dynamic, { runConfig: small }).runConfig).toEqual(small);
  });
});

describe('over random runs', () => {
  it('gives a deeply frozen checkpoint and leaves the one before as it was', () => {
    fc.assert(
      fc.property(randomHistory(), (history) => {
        for (const { before, outcome } of transitionsOf(history)) {
          const text = JSON.stringify(before);
          expect(isDeepFrozen(fold(before, outcome))).toBe(true);
          expect(JSON.stringify(before)).toBe(text);
        }
      }),
    );
  });

  it('has a status that follows from the content', () => {
    fc.assert(
      fc.property(randomHistory(), (history) => {
        for (const { after } of transitionsOf(history)) {
          const undecided = undecidedApprovals(after);
          if (after.status === 'finished') expect(openCalls(after)).toEqual([]);
          else expect(after.status).toBe(undecided.length > 0 ? 'awaiting-approval' : 'in-progress');
          if (after.status !== 'awaiting-approval') continue;
          expect(after.approvalIds).toEqual(undecided.map(({ id }) => id));
          expect(after.approvalId).toBe(after.approvalIds[0]);
        }
      }),
    );
  });

  it('never loses or changes a recorded result, and keeps one result a call in call order', () => {
    fc.assert(
      fc.property(randomHistory(), (history) => {
        for (const { before, after } of transitionsOf(history)) {
          const kept = recorded(after);
          for (const [place, value] of recorded(before))
            expect(kept.has(place) && jsonEqual(kept.get(place), value)).toBe(true);
          const step = lastStep(after.messages);
          const settled = after.settledResults.map(({ toolCallId }) => toolCallId);
          expect(new Set(settled).size).toBe(settled.length);
          const placed = need(step ?? { calls: [], answered: 0 });
          for (const id of settled)
            expect(placed.calls.findIndex((open) => open.toolCallId === id)).toBeGreaterThan(placed.answered);
        }
      }),
    );
  });

  it('keeps a transcript that a provider takes, apart from the calls that are still open', () => {
    fc.assert(
      fc.property(randomHistory(), (history) => {
        for (const state of statesOf(history)) {
          const open = openCalls(state);
          const problems = transcriptProblems(state.messages);
          if (open.length === 0) expect(problems).toEqual([]);
          else
            expect(problems.every((problem) => problem.endsWith('its result does not follow.'))).toBe(true);
        }
      }),
    );
  });

  it('never loses input: it is in the transcript or held back, in the order in which it came', () => {
    fc.assert(
      fc.property(randomHistory(), (history) => {
        const given: string[] = [JSON.stringify('go')];
        for (const { outcome, after } of transitionsOf(history)) {
          if (outcome.type === 'input')
            given.push(...outcome.messages.map(({ content }) => JSON.stringify(content)));
          const kept = [...after.messages, ...after.heldInput].filter(({ role }) => role === 'user');
          expect(kept.map(({ content }) => JSON.stringify(content))).toEqual(given);
        }
      }),
    );
  });

  it('counts every model call of a run once', () => {
    fc.assert(
      fc.property(randomHistory(), (history) => {
        let made = 0;
        for (const { outcome, after } of transitionsOf(history)) {
          if (outcome.type === 'modelResponse' || outcome.type === 'modelDropped') made += 1;
          if (outcome.type === 'nextRun') made = 0;
          expect(after.usage.modelCalls).toBe(made);
        }
      }),
    );
  });

  it('drops lastError and attempts with every progress, and with nothing else', () => {
    const progress = ['modelResponse', 'modelDropped', 'results', 'paused', 'aborted', 'finished', 'nextRun'];
    fc.assert(
      fc.property(randomHistory(), (history) => {
        for (const { before, outcome, after } of transitionsOf(history)) {
          if (before.status !== 'in-progress' || after.status !== 'in-progress') continue;
          if (outcome.type === 'failed') expect(after.attempts).toBe((before.attempts ?? 0) + 1);
          else if (progress.includes(outcome.type) || isChildAtWork(before, outcome))
            expect(after.attempts).toBeUndefined();
          else expect(after.attempts).toBe(before.attempts);
          expect(after.lastError === undefined).toBe(after.attempts === undefined);
        }
      }),
    );
  });
});

/** A sub-agent got on: it made another model call. */
function isChildAtWork(before: Checkpoint, outcome: Outcome): boolean {
  if (outcome.type !== 'childSpent') return false;
  const { checkpointId, usage } = outcome.child;
  const known = before.delegatedInFlight.find((child) => child.checkpointId === checkpointId);
  return usage.modelCalls > (known?.usage.modelCalls ?? 0);
}

function callArgs(checkpoint: Checkpoint, id: string): JsonValue | undefined {
  return lastStep(checkpoint.messages)?.calls.find(({ toolCallId }) => toolCallId === id)?.args;
}

/** Every recorded result by its place: those that wait too. */
function recorded(checkpoint: Checkpoint): ReadonlyMap<string, JsonValue> {
  const places = new Map<string, JsonValue>();
  for (const { call: answered, result: value } of answeredCalls(checkpoint.messages))
    places.set(answered.toolCallId, value as unknown as JsonValue);
  for (const value of checkpoint.settledResults) places.set(value.toolCallId, value as unknown as JsonValue);
  return places;
}
