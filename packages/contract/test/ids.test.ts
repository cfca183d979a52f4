/** Which ids a caller may choose, and that the keys made from them lead back. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  approvalIdInside,
  approvalIdOf,
  assertCheckpointId,
  assertRunId,
  assertSessionId,
  checkpointIdOfApproval,
  childCheckpointId,
  classifyCheckpointId,
  isCheckpointId,
  isSDKError,
  turnCheckpointId,
  type CallPosition,
} from '../src/index.ts';

const a = (length: number): string => 'a'.repeat(length);
const letters = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-'];
const idText = (maxLength: number, units = [...letters, '.']): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...units), minLength: 1, maxLength });
const runId = (): fc.Arbitrary<string> =>
  idText(200).filter((id) => refusedBy(assertRunId, id) === undefined);
const sessionId = (): fc.Arbitrary<string> => idText(128, letters);
const position = (): fc.Arbitrary<CallPosition> =>
  fc.record({ runId: fc.uuid(), step: fc.nat({ max: 9_999 }), index: fc.nat({ max: 99 }) });

/** The rule in the refusal, or `undefined` when the id is accepted. */
function refusedBy(check: (id: string) => void, id: unknown): string | undefined {
  try {
    check(id as string);
    return undefined;
  } catch (error) {
    if (!isSDKError(error, 'LOUSHO_SESSION_ID_INVALID')) throw error;
    return error.details.rule;
  }
}

const validRunIds: readonly string[] = [
  'a',
  'A',
  '0',
  '_',
  '-',
  '-a',
  a(200),
  'order.7',
  'a..b',
  'chat.turn-x',
  'chat.turn-',
  'chat.turn',
  'chat-turn-3',
  'chat.turn-3.b',
  'chat.turn-3a',
  'a.fired',
  'a.pause',
  'paused',
  'fire',
  'turn-3',
  'trip.fork-1',
  'a.sub',
  'a.subtotal',
  'a.apr',
  'sub-1',
  'con',
  'x.json',
  '__proto__',
  'constructor',
];
const invalidRunIds: readonly (readonly [unknown, string])[] = [
  ['', '1-200 characters long'],
  [a(201), '1-200 characters long'],
  ['.a', 'no dot at its start or end'],
  ['a.', 'no dot at its start or end'],
  ['.', 'no dot at its start or end'],
  ['a b', 'has only'],
  ['a/b', 'has only'],
  ['a\\b', 'has only'],
  ['a:b', 'has only'],
  ['a~b', 'has only'],
  ['a\n', 'has only'],
  ['a\nb', 'has only'],
  ['\na', 'has only'],
  ['a\u0000', 'has only'],
  ['caf\u00e9', 'has only'],
  ['\u212a', 'has only'],
  ['\uff41', 'has only'],
  ['chat.turn-3', 'does not end in'],
  ['chat.turn-0', 'does not end in'],
  ['chat.TURN-12', 'does not end in'],
  ['a.b.turn-1', 'does not end in'],
  ['chat.paused', 'does not end in'],
  ['chat.Paused', 'does not end in'],
  ['job.fire', 'does not end in'],
  ['job.FIRE', 'does not end in'],
  ['a.sub-1', 'does not contain'],
  ['a.SUB-1', 'does not contain'],
  ['a.sub-12345678-1-0', 'does not contain'],
  ['a.apr-12345678-1-0', 'does not contain'],
  ['a.Apr-x.b', 'does not contain'],
  [undefined, 'a run id is a text'],
  [null, 'a run id is a text'],
  [42, 'a run id is a text'],
  [['a'], 'a run id is a text'],
  [Object.create(null), 'a run id is a text'],
];

describe('assertRunId', () => {
  it.each(validRunIds)('accepts %j', (id) => {
    expect(refusedBy(assertRunId, id)).toBeUndefined();
  });

  it.each(invalidRunIds)('refuses %j: %s', (id, rule) => {
    expect(refusedBy(assertRunId, id)).toContain(rule);
  });

  it('names the id and the rule in the error, and shortens a huge id', () => {
    expect(() => assertRunId('a/b')).toThrow(
      'The id "a/b" cannot be used: a run id has only A-Z a-z 0-9 _ . -.',
    );
    expect(() => assertRunId(a(100_000))).toThrow(/^.{0,200}$/);
  });

  it('accepts only what a store may be asked for', () => {
    fc.assert(fc.property(runId(), (id) => isCheckpointId(id)));
  });
});

describe('assertSessionId', () => {
  it.each(['a', a(128), '_-9', '__proto__', 'turn-3'])('accepts %j', (id) => {
    expect(refusedBy(assertSessionId, id)).toBeUndefined();
  });

  it.each(['', a(129), 'a.b', '.', 'a\n', '\u00e9', 'a b', 'a/b', undefined, 7])('refuses %j', (id) => {
    expect(refusedBy(assertSessionId, id)).toContain('1-128 characters of A-Z a-z 0-9 _ -');
  });

  it('accepts only what is a run id too, so that a session and a run cannot differ about an id', () => {
    fc.assert(fc.property(sessionId(), (id) => refusedBy(assertRunId, id) === undefined));
  });
});

describe('assertCheckpointId', () => {
  it.each(['a', a(300), 'chat.turn-3', 'chat.paused', 'job.1.fire', 'a.sub-12345678-1-0', '-', '__proto__'])(
    'accepts %j',
    (id) => {
      expect(refusedBy(assertCheckpointId, id)).toBeUndefined();
    },
  );

  it.each([
    '',
    a(301),
    '.a',
    'a.',
    '.',
    '..',
    'a/b',
    '../a',
    'a\n',
    'a\u0000b',
    '\u00e9',
    undefined,
    null,
    1,
    {},
  ])('refuses %j', (id) => {
    expect(refusedBy(assertCheckpointId, id)).toContain('1-300 characters');
    expect(isCheckpointId(id)).toBe(false);
  });

  it('takes the longest ids that can be made: a run three sub-agents deep', () => {
    const call = { runId: '0b9f6c1e-8f2e-4d53-9a70-3c5a54a3f9b1', step: 9_999, index: 99 };
    const deepest = [1, 2, 3].reduce((lead) => childCheckpointId(lead, call), a(200));
    expect(isCheckpointId(deepest)).toBe(true);
    expect(checkpointIdOfApproval(approvalIdOf(deepest, call))).toBe(deepest);
  });
});

describe('classifyCheckpointId', () => {
  it.each([
    ['order-7', { kind: 'run' }],
    ['trip.fork-1', { kind: 'run' }],
    ['chat.turn-x', { kind: 'run' }],
    ['chat.turn-0', { kind: 'session', sessionId: 'chat', turn: 0 }],
    ['chat.turn-12', { kind: 'session', sessionId: 'chat', turn: 12 }],
    ['order.sub-0b9f6c1e-3-0', { kind: 'child', leadId: 'order' }],
    ['chat.turn-2.sub-0b9f6c1e-3-0', { kind: 'child', leadId: 'chat.turn-2' }],
    ['order.sub-0b9f6c1e-3-0.sub-aaaaaaaa-1-2', { kind: 'child', leadId: 'order' }],
    ['chat.paused', { kind: 'bookkeeping' }],
    ['daily.1700000000000.fire', { kind: 'bookkeeping' }],
  ])('reads %s', (id, kind) => {
    expect(classifyCheckpointId(id)).toEqual(kind);
  });

  it('leads back from every key that is made, and takes no run id for one', () => {
    fc.assert(
      fc.property(
        runId(),
        sessionId(),
        fc.nat(),
        position(),
        position(),
        (run, session, turn, call, inner) => {
          expect(classifyCheckpointId(run)).toEqual({ kind: 'run' });
          const turnId = turnCheckpointId(session, turn);
          expect(classifyCheckpointId(turnId)).toEqual({ kind: 'session', sessionId: session, turn });
          for (const lead of [run, turnId]) {
            const child = childCheckpointId(lead, call);
            expect(classifyCheckpointId(child)).toEqual({ kind: 'child', leadId: lead });
            expect(classifyCheckpointId(childCheckpointId(child, inner))).toEqual({
              kind: 'child',
              leadId: lead,
            });
          }
        },
      ),
    );
  });
});

describe('approval ids', () => {
  it('name their checkpoint, whatever that is and whatever the run id looks like', () => {
    const anyRunId = fc.oneof(fc.uuid(), fc.string(), fc.constantFrom('0', 'Run_1', 'r.1', 'R-1-2'));
    fc.assert(
      fc.property(runId(), sessionId(), position(), anyRunId, (run, session, call, id) => {
        const odd = { ...call, runId: id };
        for (const checkpointId of [run, turnCheckpointId(session, 3), childCheckpointId(run, odd)])
          expect(checkpointIdOfApproval(approvalIdOf(checkpointId, odd))).toBe(checkpointId);
      }),
    );
  });

  it('are the same for the same call and differ by run, step and position', () => {
    const call = { runId: '0b9f6c1e-8f2e-4d53-9a70-3c5a54a3f9b1', step: 3, index: 1 };
    expect(approvalIdOf('order', call)).toBe('order.apr-0b9f6c1e-3-1');
    expect(approvalIdOf('order', { ...call })).toBe(approvalIdOf('order', call));
    const others = [{ runId: 'ffffffff-8f2e' }, { step: 31 }, { index: 11 }, { step: 1, index: 3 }];
    const ids = others.map((other) => approvalIdOf('order', { ...call, ...other }));
    expect(new Set([approvalIdOf('order', call), ...ids]).size).toBe(5);
  });

  it.each([
    '',
    'order',
    'order.apr-',
    'order.apr-0b9f6c1e-3',
    'order.apr-0b9f6c1e-3-x',
    'order.apr-0b9f6c1e-3-1\n',
    'order.apr-0b9f6c1-3-1',
    '.apr-0b9f6c1e-3-1',
    'a/b.apr-0b9f6c1e-3-1',
    '../x.apr-0b9f6c1e-3-1',
    `${a(301)}.apr-0b9f6c1e-3-1`,
  ])('%j never was one', (id) => {
    expect(checkpointIdOfApproval(id)).toBeUndefined();
  });

  it('of calls inside sub-agents name the lead and the way down, and each call on it has one of its own', () => {
    const outer = approvalIdOf('order', { runId: '0b9f6c1e', step: 3, index: 1 });
    const inner = approvalIdInside(outer, { step: 2, index: 0 });
    expect(inner).toBe('order.apr-0b9f6c1e-3-1-2-0');
    const deeper = approvalIdInside(inner, { step: 1, index: 4 });
    for (const id of [outer, inner, deeper]) expect(checkpointIdOfApproval(id)).toBe('order');
    const others = [
      { step: 2, index: 1 },
      { step: 20, index: 0 },
    ].map((call) => approvalIdInside(outer, call));
    expect(new Set([outer, inner, deeper, ...others]).size).toBe(5);
    expect(checkpointIdOfApproval(`${outer}-2`)).toBeUndefined();
  });

  it('answers at once for a hostile text', () => {
    const startedAt = performance.now();
    checkpointIdOfApproval('a.apr-00000000-1-'.repeat(20_000));
    checkpointIdOfApproval(`a.apr-00000000${'-1-1'.repeat(20_000)}-`);
    classifyCheckpointId('a.sub-00000000-1-'.repeat(20_000));
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});
