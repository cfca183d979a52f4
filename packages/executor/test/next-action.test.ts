import { fc } from './properties.ts';
import { addModelCall, emptyUsage, type Checkpoint } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { nextAction, openCalls, type NextAction } from '../src/next-action.ts';
import {
  approvalOf,
  assistant,
  call,
  finished,
  inProgress,
  oneCall,
  result,
  tool,
  user,
  waiting,
  yes,
} from './checkpoints.ts';
import { randomHistory, statesOf } from './random-runs.ts';

const policy = { maxSteps: 3, limits: {} };
const ask = [user('go'), assistant('', call('a'), call('b'))];

const rules: readonly (readonly [string, Checkpoint, NextAction])[] = [
  ['a run with input and no response asks the model', inProgress(), { type: 'callModel' }],
  [
    'calls without a result run, in call order',
    inProgress({ messages: ask, stepIndex: 1 }),
    {
      type: 'runTools',
      calls: [
        { call: call('a'), index: 0 },
        { call: call('b'), index: 1 },
      ],
    },
  ],
  [
    'a call whose result settled early does not run again',
    inProgress({ messages: ask, stepIndex: 1, settledResults: [result('b')] }),
    { type: 'runTools', calls: [{ call: call('a'), index: 0 }] },
  ],
  [
    'a call whose result is in the transcript does not run again',
    inProgress({ messages: [...ask, tool('a')], stepIndex: 1 }),
    { type: 'runTools', calls: [{ call: call('b'), index: 1 }] },
  ],
  [
    'when every call has its result the model is asked again',
    inProgress({ messages: [...ask, tool('a'), tool('b')], stepIndex: 1 }),
    { type: 'callModel' },
  ],
  [
    'nothing runs while one call waits for a person, not even the decided ones',
    waiting({ messages: ask, approvals: [approvalOf('a', { decision: yes }), approvalOf('b')] }),
    { type: 'waitForApproval', approvals: [approvalOf('b')] },
  ],
  [
    'calls run once the last decision is there',
    inProgress({
      messages: ask,
      approvals: [approvalOf('a', { decision: yes }), approvalOf('b', { decision: yes })],
    }),
    {
      type: 'runTools',
      calls: [
        { call: call('a'), index: 0 },
        { call: call('b'), index: 1 },
      ],
    },
  ],
  [
    'the approval of a call that has its result is not waited for',
    inProgress({ messages: [...ask, tool('a')], approvals: [approvalOf('a')] }),
    { type: 'runTools', calls: [{ call: call('b'), index: 1 }] },
  ],
  [
    'a call that the provider runs itself is never ours to run',
    inProgress({
      messages: [user('go'), assistant('found', { ...call('search'), providerExecuted: true })],
      stepIndex: 1,
    }),
    { type: 'finish', finishReason: 'stop' },
  ],
  [
    'input that waits stays behind open calls',
    inProgress({ messages: ask, stepIndex: 1, heldInput: [user('and')] }),
    {
      type: 'runTools',
      calls: [
        { call: call('a'), index: 0 },
        { call: call('b'), index: 1 },
      ],
    },
  ],
  [
    'input that waits joins when no call is open',
    inProgress({ messages: [...ask, tool('a'), tool('b')], stepIndex: 1, heldInput: [user('and')] }),
    { type: 'joinInput' },
  ],
  [
    'input that came during the last words joins behind them',
    inProgress({ messages: [user('go'), assistant('done')], stepIndex: 1, heldInput: [user('and')] }),
    { type: 'joinInput' },
  ],
  [
    'an answer without calls ends the run',
    inProgress({ messages: [user('go'), assistant('done')], stepIndex: 1 }),
    { type: 'finish', finishReason: 'stop' },
  ],
  [
    'an empty answer ends the run too',
    inProgress({ messages: [user('go'), assistant('')], stepIndex: 1 }),
    { type: 'finish', finishReason: 'stop' },
  ],
  [
    'a spent step budget ends the run between a result and the next model call',
    inProgress({ messages: [...ask, tool('a'), tool('b')], stepIndex: 3 }),
    { type: 'finish', finishReason: 'max-steps' },
  ],
  [
    'a spent step budget never leaves calls open',
    inProgress({ messages: ask, stepIndex: 3 }),
    {
      type: 'runTools',
      calls: [
        { call: call('a'), index: 0 },
        { call: call('b'), index: 1 },
      ],
    },
  ],
  [
    'the last answer within the budget counts as an end of its own',
    inProgress({ messages: [user('go'), assistant('done')], stepIndex: 3 }),
    { type: 'finish', finishReason: 'stop' },
  ],
  ['a finished run is done', finished(), { type: 'done' }],
  [
    'a finished run that took more input starts the next one',
    finished({ heldInput: [user('and')] }),
    { type: 'startNextRun' },
  ],
  [
    'an aborted run goes on like any other',
    inProgress({ messages: ask, finishReason: 'aborted', settledResults: [result('a')] }),
    { type: 'runTools', calls: [{ call: call('b'), index: 1 }] },
  ],
];

describe('what has to happen now', () => {
  it.each(rules)('%s', (_rule, checkpoint, action) => {
    expect(nextAction(checkpoint, policy)).toEqual(action);
  });
});

describe('limits', () => {
  const spent = addModelCall(emptyUsage, 'mock', { ...oneCall, totalTokens: 200, costUsd: 0.5 });
  const unpriced = addModelCall(spent, 'mock', oneCall);
  const state = inProgress({ messages: [...ask, tool('a'), tool('b')], stepIndex: 1, usage: spent });

  it.each([
    [{ maxTotalTokens: 200 }, { name: 'maxTotalTokens', max: 200, used: 200 }],
    [{ maxModelCalls: 1 }, { name: 'maxModelCalls', max: 1, used: 1 }],
    [{ maxToolCalls: 2 }, { name: 'maxToolCalls', max: 2, used: 2 }],
    [{ maxCostUsd: 0.25 }, { name: 'maxCostUsd', max: 0.25, used: 0.5 }],
  ] as const)('%o ends the run and says what was used', (limits, limit) => {
    expect(nextAction(state, { maxSteps: 9, limits })).toEqual({
      type: 'finish',
      finishReason: 'limit',
      limit,
    });
  });

  it.each([
    ['one token is left', state, { maxTotalTokens: 201 }],
    ['one call is left', state, { maxModelCalls: 2, maxToolCalls: 3 }],
    ['the cost is not known', { ...state, usage: unpriced }, { maxCostUsd: 0.1 }],
    ['nothing is limited', state, { maxTotalTokens: undefined }],
  ] as const)('goes on when %s', (_when, checkpoint, limits) => {
    expect(nextAction(checkpoint, { maxSteps: 9, limits })).toEqual({ type: 'callModel' });
  });

  it('counts the tool calls of this run only, not those of earlier turns', () => {
    const laterTurn = inProgress({
      messages: [...ask, tool('a'), tool('b'), assistant('done'), user('again')],
      runInput: { start: 5, count: 1 },
    });
    expect(nextAction(laterTurn, { maxSteps: 9, limits: { maxToolCalls: 1 } })).toEqual({
      type: 'callModel',
    });
  });

  it('counts what unfinished sub-agents are known to have spent', () => {
    const withChild = { ...state, delegatedInFlight: [{ checkpointId: 'c', usage: oneCall }] };
    expect(nextAction(withChild, { maxSteps: 9, limits: { maxModelCalls: 2 } })).toMatchObject({
      limit: { used: 2 },
    });
  });

  it('never ends a run between a call and its result', () => {
    const open = inProgress({ messages: ask, stepIndex: 1, usage: spent });
    expect(nextAction(open, { maxSteps: 1, limits: { maxModelCalls: 1 } }).type).toBe('runTools');
  });
});

describe('over random runs', () => {
  it('always says one thing, and never asks the model while a call of the last response is open', () => {
    fc.assert(
      fc.property(randomHistory(), fc.integer({ min: 1, max: 5 }), (history, maxSteps) => {
        for (const state of statesOf(history)) {
          const action = nextAction(state, { maxSteps, limits: { maxModelCalls: maxSteps + 1 } });
          const open = openCalls(state);
          if (open.length === 0) {
            expect(['runTools', 'waitForApproval']).not.toContain(action.type);
          } else if (state.status !== 'finished') {
            expect(['runTools', 'waitForApproval']).toContain(action.type);
          }
          if (action.type === 'runTools') expect(action.calls).toEqual(open);
          expect(action.type === 'waitForApproval').toBe(state.status === 'awaiting-approval');
        }
      }),
    );
  });
});
