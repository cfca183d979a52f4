/** The checker itself: it is silent when all went well, and each of its rules sees the fault that it is for. */
import type { Checkpoint, Message } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { describeViolations, findViolations, ruleNames, type RuleName } from '../src/checker.ts';
import { SESSION, TTL_MS, goodStory, killedStory, stoppedStory, type Story } from './support/story.ts';

it('finds nothing in a run where everything held', () => {
  expect(describeViolations(findViolations(goodStory().evidence))).toBe('');
});

const rejected = (code: string) => ({ outcome: { type: 'rejected', code, message: '' } });

type Fault = readonly [rule: RuleName, what: string, plant: (story: Story) => unknown];

const faults: readonly Fault[] = [
  ['G1 G2 G6: runs are whole', 'the run is gone', (story) => story.finals.set(SESSION, null)],
  [
    'G1 G2 G6: runs are whole',
    'it is not finished',
    (story) => story.changeFinal(() => ({ status: 'in-progress' })),
  ],
  ['G1 G2 G6: runs are whole', 'a result is missing', (story) => story.changeFinal(without(2))],
  ['G1 G2 G6: runs are whole', 'two results are swapped', (story) => story.changeFinal(swapping(2, 3))],
  ['G1 G2 G6: runs are whole', 'a call has two results', (story) => story.changeFinal(repeating(2))],
  ['G1 G2 G6: runs are whole', 'a result never found its place', (story) => story.changeFinal(settling(2))],

  [
    'G15: what is acknowledged is kept',
    'a message is another one',
    (story) => story.changeFinal(rewriting(0)),
  ],
  ['G15: what is acknowledged is kept', 'the last save is lost', (story) => story.changeFinal(without(4))],
  [
    'G15: what is acknowledged is kept',
    'a result beside the transcript is lost',
    (story) => {
      const { digest } = story.find('save.acknowledged') as { digest: object };
      Object.assign(digest, { settled: [['c1-7', 'its hash']] });
    },
  ],
  [
    'G15: what is acknowledged is kept',
    'a decision is lost',
    (story) =>
      Object.assign(digestWith(story, 'decisions'), {
        decisions: [{ id: 'x', callId: 'c', approved: true }],
      }),
  ],
  [
    'G15: what is acknowledged is kept',
    'an input id is lost',
    (story) => story.changeFinal(() => ({ inputIds: [] })),
  ],
  [
    'G15: what is acknowledged is kept',
    'another handle saw an older state',
    (story) => (story.looks = [{ ...story.looks[0], checkpoint: null } as never]),
  ],

  ['G18: inputs count once', 'an input is there twice', (story) => story.changeFinal(repeating(0))],
  ['G18: inputs count once', 'an accepted input is not there', (story) => story.changeFinal(without(0))],

  [
    'G3: recorded results stand',
    'a call with a result begins again',
    (story) =>
      story.repeat(story.find('tool.started', { callId: 'c1-0' }), { worker: 'w3', op: 'w3-1', fence: 3 }),
  ],
  [
    'G3: recorded results stand',
    'the same process begins it again within one turn',
    (story) => story.repeat(story.find('tool.started', { callId: 'c1-0' }), { turnAt: 0 }),
  ],
  [
    'N1: calls begin once per cut',
    'a call begins twice in one execution',
    (story) => story.repeat(story.find('tool.started', { callId: 'c1-0' }), {}, 'behind'),
  ],
  [
    'N1: calls begin once per cut',
    'a second process begins a call of a living one',
    (story) =>
      story.repeat(story.find('tool.started', { callId: 'c1-0' }), { worker: 'w3', op: 'w3-1' }, 'behind'),
  ],
  [
    'N1: calls begin once per cut',
    'a call that is run again has another key',
    (story) => {
      const start = story.find('tool.started', { callId: 'c1-0' });
      story.repeat(start, { worker: 'w3', op: 'w3-1', key: 'another' }, 'behind');
      killBehind(story, start);
    },
  ],
  [
    'G7: approved and careful calls begin at most once',
    'an approved call is run again after a kill',
    (story) => {
      const start = story.find('tool.started', { callId: 'c1-1' });
      story.repeat(start, { worker: 'w3', op: 'w3-1', fence: 3 }, 'behind');
      killBehind(story, start);
    },
  ],
  [
    'G8 G9: only approved calls begin',
    'nobody had decided',
    (story) => story.lines.splice(story.indexOf('op.decided'), 1),
  ],
  [
    'G8 G9: only approved calls begin',
    'somebody had said no',
    (story) => (story.find('op.decided')['approved'] = false),
  ],
  [
    'G8 G9: only approved calls begin',
    'what ran is not what was seen',
    (story) => (story.find('tool.started', { callId: 'c1-1' })['args'] = { amount: 1_000 }),
  ],
  [
    'G8 G9: only approved calls begin',
    'a rejected call ran',
    (story) => story.changeFinal(withApproval({ approved: false })),
  ],
  [
    'G8 G9: only approved calls begin',
    'the decision left no trace',
    (story) => story.changeFinal(withApproval(undefined)),
  ],
  [
    'G5: effects follow their save',
    'a call begins before its response is stored',
    (story) => story.lines.splice(story.indexOf('save.acknowledged'), 1),
  ],
  [
    'G5: effects follow their save',
    'the model is asked while a result is not stored',
    (story) => {
      const stored = story.indexOf('model.asked', { position: 2 }) - 2;
      expect(story.lines[stored]?.kind).toBe('save.acknowledged');
      story.lines.splice(stored, 1);
    },
  ],
  [
    'G1: results are true',
    'a call has a result and never ended',
    (story) => story.lines.splice(story.indexOf('tool.done', { callId: 'c1-0' }), 1),
  ],

  [
    'G4: responses are asked for once',
    'a stored response is asked for again',
    (story) =>
      story.repeat(story.find('model.asked', { position: 1 }), { worker: 'w3', op: 'w3-1', fence: 3 }),
  ],
  ['G23: usage counts each call once', 'one call too many', (story) => story.changeFinal(countingCalls(3))],
  ['G23: usage counts each call once', 'one call too few', (story) => story.changeFinal(countingCalls(1))],
  [
    'G23: usage counts each call once',
    'a save on the way counted wrong',
    (story) => Object.assign(digestWith(story, 'modelCalls'), { modelCalls: 2 }),
  ],
  [
    'G23: usage counts each call once',
    'an answer that nobody cut is not counted',
    (story) => story.repeat(story.find('model.answered', { position: 2 }), { position: 3 }),
  ],
  [
    'G23: usage counts each call once',
    'a response that the model never gave',
    (story) => story.lines.splice(story.indexOf('model.answered', { position: 2 }), 1),
  ],

  [
    'G13 G14: only the holder acts',
    'a tool begins under a lease that was taken over',
    (story) => story.repeat(story.find('tool.started', { callId: 'c1-0' }), { callId: 'c1-9' }),
  ],
  [
    'G13 G14: only the holder acts',
    'a model is asked under a lease that was taken over',
    (story) => story.repeat(story.find('model.asked', { position: 1 }), { position: 3 }),
  ],
  [
    'G13 G14: only the holder acts',
    'a save under a lease that was taken over is acknowledged',
    (story) => story.repeat(story.find('save.acknowledged'), { askedAt: 10_000 }),
  ],
  [
    'L2 L4 L7: take-overs are due',
    'a lease is taken from a living holder',
    (story) => {
      story.lines.splice(story.indexOf('lease.releasing', { fence: 1 }), 1);
      story.lines.splice(story.indexOf('op.ended', { op: 'w1-1' }), 1);
    },
  ],
  [
    'L2 L4 L7: take-overs are due',
    'a fence is used twice',
    (story) => (story.find('lease.taken', { fence: 2 })['fence'] = 1),
  ],

  [
    'G10 G13: refused calls change nothing',
    'a refused send leaves its input',
    (story) => refuse(story, 'w1-1'),
  ],
  ['G10 G13: refused calls change nothing', 'a refused decision counts', (story) => refuse(story, 'w2-1')],
  [
    'G10 G13: refused calls change nothing',
    'a refused call has an effect',
    (story) =>
      story
        .add('op.ended', { worker: 'w3', op: 'w3-1', ...rejected('LOUSHO_SESSION_BUSY') })
        .add('tool.started', {
          worker: 'w3',
          op: 'w3-1',
          fence: 3,
          callId: 'c9-0',
          toolName: 'work',
          key: '',
        }),
  ],
  [
    'G10: one decision counts',
    'two people hear that their decision counts',
    (story) =>
      story
        .repeat(story.find('op.decided'), { op: 'w3-1', worker: 'w3' })
        .repeat(story.find('op.ended', { op: 'w2-1' }), { op: 'w3-1', worker: 'w3' }),
  ],
  [
    'G15: saves are told truly',
    'a run tells of a save that was not acknowledged',
    (story) => story.lines.splice(story.indexOf('save.acknowledged', { op: 'w2-1' }), 1),
  ],
  [
    'G27: errors are documented',
    'somebody gets an error without a code',
    (story) =>
      story.add('op.ended', { worker: 'w3', op: 'w3-1', outcome: { type: 'rejected', message: 'no' } }),
  ],
  [
    'nobody crashes',
    'a process dies by itself',
    (story) => story.add('worker.crashed', { worker: 'w1', text: 'code 1' }),
  ],
];

describe('a planted fault', () => {
  it.each(faults)('breaks "%s": %s', (rule, _what, plant) => {
    const story = goodStory();
    plant(story);
    expect(findViolations(story.evidence).map((violation) => violation.rule)).toContain(rule);
  });

  it('is there for each rule', () => {
    expect(new Set(faults.map(([rule]) => rule))).toEqual(new Set(ruleNames));
  });
});

describe('what may happen is no violation:', () => {
  it('responses and calls that were cut by a kill are asked for and begin again', () => {
    expect(violationsOf(killedStory())).toBe('');
  });

  it('a process that was stopped in the middle of a turn ends that turn late', () => {
    expect(violationsOf(stoppedStory())).toBe('');
  });

  it('but a stopped process that begins a new turn with an effect is caught', () => {
    const story = stoppedStory();
    const late = story.lines.findLast(({ kind, worker }) => kind === 'tool.started' && worker === 'w0');
    Object.assign(late as object, { turnAt: late?.at });
    expect(violationsOf(story)).toContain('G13 G14: only the holder acts');
  });

  it('and a take-over before two periods have passed is caught', () => {
    const story = stoppedStory();
    const taken = story.find('lease.taken', { fence: 1 }) as { at: number };
    taken.at -= TTL_MS;
    expect(violationsOf(story)).toContain('L2 L4 L7: take-overs are due');
  });
});

function violationsOf(story: Story): string {
  return describeViolations(findViolations(story.evidence));
}

function killBehind(story: Story, start: object): void {
  const at = story.lines.findIndex((line) => line === start) + 1;
  story.lines.splice(at, 0, { kind: 'worker.killed', worker: (start as { worker: string }).worker, at: 0 });
}

function refuse(story: Story, op: string): void {
  Object.assign(story.find('op.ended', { op }), rejected('LOUSHO_SESSION_BUSY'));
  story.lines = story.lines.filter((line) => line.kind !== 'lease.taken' || line.op !== op);
}

/** The digest of the first save, which has this field. */
function digestWith(story: Story, field: string): object {
  const { digest } = story.find('save.acknowledged') as { digest: object };
  expect(digest).toHaveProperty(field);
  return digest;
}

/* ── Other endings ── */

type Ending = (final: Checkpoint) => object;

function without(index: number): Ending {
  return ({ messages }) => ({ messages: messages.toSpliced(index, 1) });
}

function repeating(index: number): Ending {
  return ({ messages }) => ({ messages: messages.toSpliced(index, 0, messages[index] as Message) });
}

function swapping(first: number, second: number): Ending {
  return ({ messages }) => ({
    messages: messages.with(first, messages[second] as Message).with(second, messages[first] as Message),
  });
}

function rewriting(index: number): Ending {
  return ({ messages }) => ({ messages: messages.with(index, { role: 'user', content: 'Input i1!' }) });
}

function settling(index: number): Ending {
  return ({ messages }) => ({ settledResults: messages[index]?.content });
}

function countingCalls(modelCalls: number): Ending {
  return ({ usage }) => ({ usage: { ...usage, modelCalls } });
}

function withApproval(changes: object | undefined): Ending {
  return ({ messages }) => ({
    messages: messages.map((message) => {
      if (message.role !== 'tool' || message.content[0].toolName !== 'refund') return message;
      const [{ approval, ...result }] = message.content;
      return {
        ...message,
        content: [changes === undefined ? result : { ...result, approval: { ...approval, ...changes } }],
      };
    }),
  });
}
