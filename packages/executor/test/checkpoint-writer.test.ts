import { SDKError, isDeepFrozen, type Checkpoint } from '@lousho/contract';
import { manualClock } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { CheckpointWriter, type WriterDeps } from '../src/checkpoint-writer.ts';
import type { HeldLease } from '../src/lease-keeper.ts';
import { assistant, call, inProgress, result, user } from './checkpoints.ts';
import { deferred, need, refusal, type Deferred } from './support.ts';

const failed = new SDKError('LOUSHO_STORE_WRITE_FAILED', { operation: 'save' });
const start = inProgress({
  messages: [user('go'), assistant('', call('a'), call('b'), call('c'))],
  stepIndex: 1,
});
const settledIds = ({ settledResults, messages }: Checkpoint): string =>
  [...messages.slice(2).map(() => '.'), ...settledResults.map(({ toolCallId }) => toolCallId)].join('');

/** A writer over a store that answers when the test says so. */
function givenWriter(more: Partial<WriterDeps> = {}) {
  const clock = manualClock();
  const asked: { readonly checkpoint: Checkpoint; readonly answer: Deferred }[] = [];
  const saved: Checkpoint[] = [];
  const writer = new CheckpointWriter(start, undefined, {
    id: 'order-7',
    store: {
      save: (_id, checkpoint) => {
        const answer = deferred();
        asked.push({ checkpoint, answer });
        return answer.promise;
      },
      load: () => Promise.resolve(null),
      delete: () => Promise.resolve(),
    },
    lease: undefined,
    clock,
    traceparent: () => undefined,
    onSaved: (checkpoint) => void saved.push(checkpoint),
    ...more,
  });
  const record = (id: string): Promise<void> => {
    writer.fold({ type: 'results', results: [result(id)] });
    return writer.save();
  };
  return { writer, clock, asked, saved, record, answer: (index: number) => need(asked[index]).answer };
}

describe('saves of one run', () => {
  it('follow each other: the next is asked for when the one before is answered', async () => {
    const { record, asked, answer, clock } = givenWriter();
    const saves = [record('c'), record('b')];
    await clock.advance(0);
    expect(asked.map(({ checkpoint }) => settledIds(checkpoint))).toEqual(['c']);
    answer(0).resolve();
    await saves[0];
    await clock.advance(0);
    expect(asked.map(({ checkpoint }) => settledIds(checkpoint))).toEqual(['c', 'cb']);
    answer(1).resolve();
    await Promise.all(saves);
  });

  it('that come while one is written are written together, and all of them wait for it', async () => {
    const { record, asked, answer, clock, writer } = givenWriter();
    const first = record('c');
    const rest = [record('b'), writer.save(), record('a')];
    let isStored = false;
    void Promise.all(rest).then(() => (isStored = true));
    answer(0).resolve();
    await first;
    await clock.advance(0);
    expect(asked).toHaveLength(2);
    expect(settledIds(need(asked[1]).checkpoint)).toBe('...');
    expect(isStored).toBe(false);
    answer(1).resolve();
    await Promise.all(rest);
  });

  it('never save less than what was there when they were asked for', async () => {
    const { record, asked, answer, clock } = givenWriter();
    void record('c');
    const second = record('b');
    answer(0).resolve();
    await clock.advance(0);
    // Comes while the second is under way: it needs a third.
    const third = record('a');
    answer(1).resolve();
    await second;
    await clock.advance(0);
    answer(2).resolve();
    await third;
    expect(asked.map(({ checkpoint }) => settledIds(checkpoint))).toEqual(['c', 'cb', '...']);
  });

  it('are stamped with their time and frozen', async () => {
    const { record, asked, answer, clock } = givenWriter();
    await clock.advance(1_000);
    const saving = record('a');
    answer(0).resolve();
    await saving;
    expect(need(asked[0]).checkpoint.savedAt).toBe('2026-01-01T00:00:01.000Z');
    expect(isDeepFrozen(need(asked[0]).checkpoint)).toBe(true);
  });

  it('keep where tracing was, so that the next stretch can link to it', async () => {
    const { record, asked, answer } = givenWriter({ traceparent: () => '00-abc-def-01' });
    const saving = record('a');
    answer(0).resolve();
    await saving;
    expect(need(asked[0]).checkpoint.traceparent).toBe('00-abc-def-01');
  });

  it('are told of when they are stored, not before', async () => {
    const { record, answer, saved, writer, clock } = givenWriter();
    const saving = record('a');
    await clock.advance(0);
    expect([saved.length, writer.stored]).toEqual([0, undefined]);
    answer(0).resolve();
    await saving;
    expect(saved).toEqual([writer.stored]);
  });
});

describe('a save that fails', () => {
  it('is tried again after 50, 250 and 1,000 ms, with the same state', async () => {
    const { record, asked, answer, clock } = givenWriter();
    const saving = record('a');
    for (const [index, waitMs] of [50, 250, 1_000].entries()) {
      answer(index).reject(failed);
      await clock.advance(waitMs - 1);
      expect(asked).toHaveLength(index + 1);
      await clock.advance(1);
      expect(asked).toHaveLength(index + 2);
    }
    answer(3).resolve();
    await saving;
    expect(new Set(asked.map(({ checkpoint }) => checkpoint)).size).toBe(1);
  });

  it('four times rejects with the last error of the store', async () => {
    const { record, answer, clock } = givenWriter();
    const last = new Error('ENOSPC');
    const saving = record('a').catch((error: unknown) => error);
    for (const [index, waitMs] of [50, 250, 1_000].entries()) {
      answer(index).reject(failed);
      await clock.advance(waitMs);
    }
    answer(3).reject(last);
    expect(await saving).toBe(last);
  });

  it.each(['LOUSHO_CHECKPOINT_TOO_LARGE', 'LOUSHO_STORE_CLOSED', 'LOUSHO_CHECKPOINT_CORRUPT'] as const)(
    'with %s is not tried again',
    async (code) => {
      const { record, answer, asked, clock } = givenWriter();
      const saving = refusal(record('a'), code);
      answer(0).reject(new SDKError(code, { id: 'order-7' } as never));
      await saving;
      await clock.advance(60_000);
      expect(asked).toHaveLength(1);
    },
  );

  it('does not poison the ones behind it: each is judged by itself', async () => {
    const { record, answer, clock, writer } = givenWriter();
    const first = record('c').catch((error: unknown) => error);
    const second = record('b');
    answer(0).reject(new SDKError('LOUSHO_STORE_CLOSED', { operation: 'save' }));
    expect(await first).toBeInstanceOf(SDKError);
    await clock.advance(0);
    answer(1).resolve();
    await second;
    expect(settledIds(need(writer.stored))).toBe('cb');
  });
});

describe('under a lease', () => {
  const lease = (more: Partial<HeldLease> = {}): HeldLease => ({
    owner: 'owner-1',
    fence: 7,
    lost: new AbortController().signal,
    ensureHeld: () => undefined,
    renewNow: () => Promise.resolve(),
    reportLost: () => new SDKError('LOUSHO_SESSION_BUSY', { sessionId: 'order-7' }),
    release: () => Promise.resolve(),
    ...more,
  });
  const store = (answers: readonly boolean[], asked: unknown[][] = []) => ({
    save: () => Promise.reject(new Error('unfenced')),
    load: () => Promise.resolve(null),
    delete: () => Promise.resolve(),
    saveIfLeased: (...args: unknown[]) => {
      asked.push(args);
      return Promise.resolve(answers[asked.length - 1] ?? true);
    },
  });

  it('each save names owner and fence', async () => {
    const asked: unknown[][] = [];
    const { record } = givenWriter({ lease: lease(), store: store([true], asked) });
    await record('a');
    expect(asked[0]?.slice(2)).toEqual(['owner-1', 7]);
  });

  it('a refused save is a lost lease, and is not tried again', async () => {
    const asked: unknown[][] = [];
    const { record, writer } = givenWriter({ lease: lease(), store: store([false], asked) });
    await refusal(record('a'), 'LOUSHO_SESSION_BUSY');
    expect(asked).toHaveLength(1);
    expect(writer.stored).toBeUndefined();
  });

  it('that is lost nothing is asked of the store any more', async () => {
    const asked: unknown[][] = [];
    const gone = new SDKError('LOUSHO_SESSION_BUSY', { sessionId: 'order-7' });
    const { record } = givenWriter({
      lease: lease({ lost: AbortSignal.abort(gone) }),
      store: store([], asked),
    });
    expect(await refusal(record('a'), 'LOUSHO_SESSION_BUSY')).toBe(gone);
    expect(asked).toEqual([]);
  });
});
