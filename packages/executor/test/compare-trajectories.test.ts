/** Two runs side by side: where they part, and in what. */
import { deepFreeze, emptyUsage, type Checkpoint, type JsonValue, type Message } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { compareTrajectories } from '../src/index.ts';
import { approvalOf, finished, inProgress, waiting } from './checkpoints.ts';

interface Call {
  readonly name: string;
  readonly args?: JsonValue;
  readonly result?: JsonValue;
}

/** A step each: a text, or calls with their results. */
function transcript(prefix: string, ...steps: readonly (string | readonly Call[])[]): readonly Message[] {
  const messages: Message[] = [{ role: 'user', content: 'go' }];
  steps.forEach((step, index) => {
    if (typeof step === 'string')
      return messages.push({ role: 'assistant', content: [{ type: 'text', text: step }] });
    const calls = step.map(({ name, args = {}, result }, position) => ({
      ...{ toolCallId: `${prefix}${index}-${position}`, toolName: name, args, result },
    }));
    messages.push({
      role: 'assistant',
      content: calls.map(({ result: _result, ...call }) => ({ type: 'tool-call', ...call })),
    });
    for (const { toolCallId, toolName, result } of calls)
      if (result !== undefined)
        messages.push({ role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, result }] });
    return messages;
  });
  return deepFreeze(messages);
}

const weather: Call = { name: 'weather', args: { city: 'Oslo', days: 2 }, result: 'sunny' };
const picnic: Call = { name: 'picnic', result: 'packed' };
const over = (
  messages: readonly Message[],
  more: Partial<Extract<Checkpoint, { status: 'finished' }>> = {},
) => finished({ messages, usage: emptyUsage, ...more });

describe('two runs that are equal', () => {
  const a = transcript('a', [weather], 'Done.');

  it('are so whatever ids their calls have, and in whatever order the keys of their arguments stand', () => {
    const b = transcript('b', [{ ...weather, args: { days: 2, city: 'Oslo' } }], 'Done.');
    expect(compareTrajectories(a, b)).toMatchObject({ divergedAt: undefined, drift: [] });
    expect(compareTrajectories(over(a), over(b))).toMatchObject({ divergedAt: undefined, drift: [] });
  });

  it('are shown as steps: words, and calls with what became of them', () => {
    expect(compareTrajectories(a, a).a).toEqual([
      {
        text: '',
        toolCalls: [
          { toolCallId: 'a0-0', toolName: 'weather', args: { city: 'Oslo', days: 2 }, result: 'sunny' },
        ],
      },
      { text: 'Done.', toolCalls: [] },
    ]);
    expect(compareTrajectories(over(a), a).b).toEqual(compareTrajectories(a, over(a)).a);
  });
});

describe('two runs that part', () => {
  const base = transcript('a', [weather], [picnic], 'Done.');
  it.each<[string, readonly Message[], number]>([
    ['at a result', transcript('a', [{ ...weather, result: 'rain' }], [picnic], 'Done.'), 1],
    ['at the arguments', transcript('a', [{ ...weather, args: { city: 'Rome' } }], [picnic], 'Done.'), 1],
    ['at a call', transcript('a', [weather], [{ ...picnic, name: 'museum' }], 'Done.'), 2],
    ['at the last words', transcript('a', [weather], [picnic], 'All done.'), 3],
    ['where one of them ends', transcript('a', [weather], [picnic]), 3],
    ['behind the end of the other', transcript('a', [weather], [picnic], 'Done.', 'More.'), 4],
    ['at the first step, when one has none', transcript('a'), 1],
  ])('part %s', (_where, other, step) => {
    expect(compareTrajectories(base, other).divergedAt).toBe(step);
    expect(compareTrajectories(other, base).divergedAt).toBe(step);
  });
});

describe('drift', () => {
  const a = transcript('a', [weather, picnic], 'Done.');

  it('of other tools names all of them in order, and no arguments', () => {
    const b = transcript('b', [picnic, { ...weather, args: {} }], 'Done.');
    expect(compareTrajectories(a, b).drift).toEqual([
      { field: 'tools', committed: 'weather > picnic', current: 'picnic > weather' },
    ]);
  });

  it('of arguments names each call that has others', () => {
    const b = transcript('b', [{ ...weather, args: { days: 3, city: 'Oslo' } }, picnic], 'Done.');
    expect(compareTrajectories(a, b).drift).toEqual([
      {
        field: 'args',
        committed: 'weather {"city":"Oslo","days":2}',
        current: 'weather {"city":"Oslo","days":3}',
      },
    ]);
  });

  it('of a result alone is none: the runs did the same', () => {
    const b = transcript('b', [{ ...weather, result: 'rain' }, picnic], 'Done.');
    expect(compareTrajectories(a, b).drift).toEqual([]);
  });

  it('of length and end names both', () => {
    const b = over(transcript('b', [weather, picnic]), { finishReason: 'max-steps' });
    expect(compareTrajectories(over(a, { finishReason: 'stop' }), b).drift).toEqual([
      { field: 'steps', committed: 2, current: 1 },
      { field: 'finishReason', committed: 'stop', current: 'max-steps' },
    ]);
  });

  it('of the end is there for runs that have one: over, paused or stopped', () => {
    const end = (b: Checkpoint | readonly Message[]) =>
      compareTrajectories(over(a, { finishReason: 'stop' }), b).drift.map((drift) => drift.current);
    expect(end(inProgress({ messages: a }))).toEqual([]);
    expect(end(a)).toEqual([]);
    expect(end(inProgress({ messages: a, finishReason: 'aborted' }))).toEqual(['aborted']);
    const open = transcript('a', [{ name: 'weather', args: weather.args ?? {} }, { name: 'picnic' }]);
    const paused = waiting({ messages: open, approvals: [approvalOf('a0-0')] });
    expect(end(paused)).toEqual([1, 'awaiting-approval']);
  });
});

it('results that settled early belong to their calls', () => {
  const messages = transcript('a', [{ name: 'slow' }, { name: 'quick' }]);
  const settledResults = [
    { type: 'tool-result', toolCallId: 'a0-1', toolName: 'quick', result: 'early' },
  ] as const;
  const [step] = compareTrajectories(inProgress({ messages, settledResults }), []).a;
  expect(step?.toolCalls.map(({ result }) => result)).toEqual([undefined, 'early']);
});
