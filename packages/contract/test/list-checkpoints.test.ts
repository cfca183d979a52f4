/** What every `list` and `history` has in common: the filter, the order, and a store that has neither. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compareSaves,
  getCheckpointHistory,
  listCheckpoints,
  matchesStatus,
  type CheckpointListEntry,
  type CheckpointStatus,
  type CheckpointStore,
  type HistoryOptions,
} from '../src/index.ts';
import { aCheckpoint, aFinishedCheckpoint, aPausedCheckpoint, anApproval } from './support/checkpoints.ts';

const early = '2024-05-01T12:00:00.000Z';
const late = '2024-05-01T12:00:00.001Z';

const running: CheckpointListEntry = {
  sessionId: 'b',
  status: 'in-progress',
  checkpoint: aCheckpoint({ savedAt: late }),
};
const finished: CheckpointListEntry = {
  sessionId: 'c',
  status: 'finished',
  checkpoint: aFinishedCheckpoint({ savedAt: early }),
};
const paused: CheckpointListEntry = {
  sessionId: 'a',
  status: 'awaiting-approval',
  checkpoint: aPausedCheckpoint([anApproval('x')], { savedAt: late }),
};
const damaged: CheckpointListEntry = {
  sessionId: '0',
  status: 'in-progress',
  checkpoint: null,
  error: { name: 'SDKError', message: 'damaged', code: 'LOUSHO_CHECKPOINT_CORRUPT', retryable: false },
};
const all = [damaged, running, paused, finished];
const ids = (entries: readonly CheckpointListEntry[]): readonly string[] =>
  entries.map((entry) => entry.sessionId);

describe('listCheckpoints', () => {
  it('puts the oldest save first, equal times by id, and what has no readable time last', () => {
    expect(ids(listCheckpoints(all))).toEqual(['c', 'a', 'b', '0']);
    expect(ids(listCheckpoints(all.toReversed()))).toEqual(['c', 'a', 'b', '0']);
  });

  it.each<readonly [CheckpointStatus | readonly CheckpointStatus[] | undefined, readonly string[]]>([
    [undefined, ['c', 'a', 'b', '0']],
    ['finished', ['c']],
    ['in-progress', ['b', '0']],
    [
      ['awaiting-approval', 'in-progress'],
      ['a', 'b', '0'],
    ],
    [[], []],
  ])('with the status filter %j gives %j', (status, expected) => {
    expect(ids(listCheckpoints(all, { status }))).toEqual(expected);
  });

  it('counts an entry without a status as in progress', () => {
    const old = { sessionId: 'old', checkpoint: aCheckpoint() } as unknown as CheckpointListEntry;
    expect(listCheckpoints([old], { status: 'in-progress' })).toEqual([{ ...old, status: 'in-progress' }]);
    expect(listCheckpoints([old], { status: 'finished' })).toEqual([]);
  });

  it('keeps a damaged record as an entry of its own', () => {
    expect(listCheckpoints([damaged])).toEqual([damaged]);
  });

  it('takes any iterable and changes nothing that it was given', () => {
    const given = Object.freeze(all.map((entry) => Object.freeze(entry)));
    expect(ids(listCheckpoints(new Set(given)))).toHaveLength(4);
    expect(given).toEqual(all);
  });
});

describe('matchesStatus', () => {
  it('takes everything without a filter', () => {
    expect(matchesStatus('finished', {})).toBe(true);
    expect(matchesStatus('finished', { status: undefined })).toBe(true);
  });
});

describe('compareSaves', () => {
  it('is an order: the same either way round, and it agrees with itself over three', () => {
    const save = fc.tuple(fc.constantFrom(undefined, early, late), fc.constantFrom('a', 'b', 'B', 'a.1'));
    fc.assert(
      fc.property(save, save, save, (a, b, c) => {
        expect(compareSaves(...a, ...b)).toBe(-compareSaves(...b, ...a) + 0);
        if (compareSaves(...a, ...b) <= 0 && compareSaves(...b, ...c) <= 0)
          expect(compareSaves(...a, ...c)).toBeLessThanOrEqual(0);
      }),
    );
  });
});

describe('getCheckpointHistory', () => {
  const bare: CheckpointStore = {
    save: async () => undefined,
    load: async () => null,
    delete: async () => undefined,
  };

  it('gives undefined for a store that keeps none, and does not throw', async () => {
    expect(await getCheckpointHistory(bare, 'a')).toBeUndefined();
  });

  it('hands id and options on, as a method of the store', async () => {
    const checkpoint = aCheckpoint();
    const entry = { step: 0, savedAt: early, status: checkpoint.status, checkpoint };
    const asked: unknown[] = [];
    const store = {
      ...bare,
      history(this: unknown, id: string, options?: HistoryOptions) {
        asked.push([this === store, id, options]);
        return Promise.resolve([entry]);
      },
    };
    expect(await getCheckpointHistory(store, 'a', { limit: 3 })).toEqual([entry]);
    expect(asked).toEqual([[true, 'a', { limit: 3 }]]);
  });

  it('lets an error of the store through', async () => {
    const failing = { ...bare, history: () => Promise.reject(new Error('disk')) };
    await expect(getCheckpointHistory(failing, 'a')).rejects.toThrow('disk');
  });
});
