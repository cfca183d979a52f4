/** What `recover()` does with a run, by what is stored of it: a table. */
import { checkpointHeader, emptyUsage, type Checkpoint, type CheckpointApproval } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { decideRecovery, type LeaveReason } from '../src/recovery-decision.ts';

const nowMs = Date.UTC(2026, 0, 1, 12);
const rules = { agentName: 'clerk', maxAttempts: 10, minRestMs: 0 };
const minute = 60_000;
const hour = 60 * minute;

type Stored<Status extends Checkpoint['status']> = Partial<Extract<Checkpoint, { status: Status }>>;

function header(fields: Stored<Checkpoint['status']>) {
  return checkpointHeader({
    version: 1,
    runId: 'run',
    agentName: 'clerk',
    status: 'in-progress',
    messages: [],
    stepIndex: 1,
    usage: emptyUsage,
    runInput: { start: 0, count: 0 },
    heldInput: [],
    inputIds: [],
    settledResults: [],
    startedToolCallIds: [],
    approvals: [],
    delegatedInFlight: [],
    savedAt: ago(1),
    ...fields,
  } as Checkpoint);
}

function ago(ms: number): string {
  return new Date(nowMs - ms).toISOString();
}

function interrupted(fields: Stored<'in-progress'> = {}) {
  return header({ status: 'in-progress', ...fields });
}

function approval(id: string, expiresAt: string | undefined): CheckpointApproval {
  return {
    id,
    kind: 'tool',
    toolCallId: `call_${id}`,
    argsHash: '',
    createdAt: ago(hour),
    ...(expiresAt === undefined ? undefined : { expiresAt }),
  };
}

function paused(...approvals: readonly CheckpointApproval[]) {
  const approvalIds = approvals.filter(({ decision }) => decision === undefined).map(({ id }) => id);
  return header({ status: 'awaiting-approval', approvalId: approvalIds[0] ?? '', approvalIds, approvals });
}

const failure = { name: 'Error', message: 'down', retryable: true };

describe('an interrupted run', () => {
  it.each<[string, ReturnType<typeof header>]>([
    ['by a crash, a moment ago', interrupted()],
    ['by a failure that may pass', interrupted({ lastError: failure, attempts: 1 })],
    ['started once, half a minute ago', interrupted({ startsWithoutProgress: 1, savedAt: ago(30_000) })],
    ['started twice, a minute ago', interrupted({ startsWithoutProgress: 2, savedAt: ago(minute) })],
    ['started eight times, an hour ago', interrupted({ startsWithoutProgress: 8, savedAt: ago(hour) })],
    ['started nine times, an hour ago', interrupted({ startsWithoutProgress: 9, savedAt: ago(hour) })],
    [
      'by a machine whose clock is a day ahead',
      interrupted({ startsWithoutProgress: 9, savedAt: ago(-24 * hour) }),
    ],
  ])('%s is resumed', (_how, stored) => {
    expect(decideRecovery(stored, rules, nowMs)).toMatchObject({ type: 'resume' });
  });

  it.each<[LeaveReason, string, ReturnType<typeof header>]>([
    ['another-agent', 'made by another agent', interrupted({ agentName: 'other' })],
    ['stopped-by-a-person', 'that a person stopped', interrupted({ finishReason: 'aborted' })],
    ['parked', 'that was parked', interrupted({ parkedAt: ago(hour), startsWithoutProgress: 10 })],
    ['not-started', 'a fork that nobody has resumed', interrupted({ startsWithoutProgress: 0 })],
    [
      'fails-the-same-way',
      'that would fail the same way',
      interrupted({ lastError: { ...failure, retryable: false } }),
    ],
    [
      'backing-off',
      'started once, less than half a minute ago',
      interrupted({ startsWithoutProgress: 1, savedAt: ago(29_999) }),
    ],
    [
      'backing-off',
      'started four times, less than four minutes ago',
      interrupted({ startsWithoutProgress: 4, savedAt: ago(4 * minute - 1) }),
    ],
    [
      'backing-off',
      'started nine times, less than an hour ago',
      interrupted({ startsWithoutProgress: 9, savedAt: ago(hour - 1) }),
    ],
  ])('is left alone (%s): %s', (because, _what, stored) => {
    expect(decideRecovery(stored, rules, nowMs)).toEqual({ type: 'leave', because });
  });

  it('started as often as it may be is parked at once, and says how often', () => {
    expect(decideRecovery(interrupted({ startsWithoutProgress: 10 }), rules, nowMs)).toEqual({
      type: 'park',
      starts: 10,
    });
    const impatient = { ...rules, maxAttempts: 1 };
    expect(decideRecovery(interrupted({ startsWithoutProgress: 1 }), impatient, nowMs)).toEqual({
      type: 'park',
      starts: 1,
    });
  });

  it('does not pay for starts that were lost to the store', () => {
    const stored = interrupted({ startsWithoutProgress: 10, savedAt: ago(hour) });
    expect(decideRecovery(stored, rules, nowMs, 1)).toEqual({ type: 'resume', starts: 9 });
    expect(decideRecovery(interrupted({ startsWithoutProgress: 1 }), rules, nowMs, 1)).toEqual({
      type: 'resume',
      starts: 0,
    });
  });
});

describe('on a store that shows what was saved only after a while', () => {
  const eventual = { ...rules, minRestMs: 90_000 };

  it('a run is touched only when it was at rest for as long', () => {
    expect(decideRecovery(interrupted({ savedAt: ago(89_999) }), eventual, nowMs)).toEqual({
      type: 'leave',
      because: 'just-saved',
    });
    expect(decideRecovery(interrupted({ savedAt: ago(-2 * minute) }), eventual, nowMs)).toEqual({
      type: 'leave',
      because: 'just-saved',
    });
    expect(decideRecovery(interrupted({ savedAt: ago(90_000) }), eventual, nowMs)).toEqual({
      type: 'resume',
      starts: 0,
    });
  });
});

describe('a paused run', () => {
  it('is a matter of people until an approval has expired', () => {
    const waiting = { type: 'leave', because: 'waits-for-a-person' };
    expect(decideRecovery(paused(approval('a', undefined)), rules, nowMs)).toEqual(waiting);
    expect(decideRecovery(paused(approval('a', ago(-1))), rules, nowMs)).toEqual(waiting);
    expect(decideRecovery(paused(approval('a', 'no time')), rules, nowMs)).toEqual(waiting);
  });

  it('has those denied that expired, and no other', () => {
    const decided = {
      ...approval('c', ago(1)),
      decision: { approved: true, source: 'person' as const, decidedAt: ago(2) },
    };
    const stored = paused(approval('a', ago(0)), approval('b', ago(-1)), decided, approval('d', ago(hour)));
    expect(decideRecovery(stored, rules, nowMs)).toEqual({ type: 'deny', approvalIds: ['a', 'd'] });
  });
});

it('a run that is over, or paused under another name, is left alone', () => {
  expect(decideRecovery(header({ status: 'finished', finishReason: 'stop' }), rules, nowMs)).toEqual({
    type: 'leave',
    because: 'finished',
  });
  const others = header({
    ...paused(approval('a', ago(1))),
    agentName: 'other',
  });
  expect(decideRecovery(others, rules, nowMs)).toEqual({ type: 'leave', because: 'another-agent' });
});
