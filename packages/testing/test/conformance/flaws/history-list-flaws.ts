/** Stores that do something wrong with histories and lists. */
import { SDKError, type Checkpoint, type CheckpointListEntry, type ListOptions } from '@lousho/contract';
import { historyEntry, listEntry, type Medium } from '../plain-store.ts';
import { turns, type Flaw } from './flaw.ts';

/** A store that loses or adds something when a save is noted in the history. */
const noting = (
  save: (id: string, checkpoint: Checkpoint) => Promise<void>,
  medium: Medium,
  note: (texts: readonly string[], text: string) => readonly string[],
) => ({
  save: async (id: string, checkpoint: Checkpoint): Promise<void> => {
    const before = medium.histories.get(id) ?? [];
    await save(id, checkpoint);
    medium.histories.set(id, note(before, medium.latest.get(id) ?? ''));
  },
});
const stepOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : (JSON.parse(text) as Checkpoint).stepIndex;

export const historyFlaws: readonly Flaw[] = [
  {
    name: 'keeps one entry a step',
    breaks: ['C16', 'H1', 'H2', 'H3', 'H4', 'H6', 'Z2', 'model/checkpoints'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: noting(checkpoints.save, medium, (texts, text) =>
        stepOf(texts.at(-1)) === stepOf(text) ? [...texts.slice(0, -1), text] : [...texts, text].slice(-50),
      ),
    }),
  },
  {
    name: 'leaves out a save that changes nothing',
    breaks: ['H1', 'model/checkpoints'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: noting(checkpoints.save, medium, (texts, text) =>
        texts.at(-1) === text ? texts : [...texts, text].slice(-50),
      ),
    }),
  },
  {
    name: 'orders the history by time',
    breaks: ['H1', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        history: async (id, { limit } = {}) => {
          const entries = [...(await checkpoints.history(id))];
          return entries
            .sort((a, b) => (a.savedAt < b.savedAt ? 1 : a.savedAt > b.savedAt ? -1 : 0))
            .slice(0, limit);
        },
      },
    }),
  },
  {
    name: 'gives each entry the status of today',
    breaks: ['H2'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        history: async (id, options) => {
          const entries = await checkpoints.history(id, options);
          const [newest] = await checkpoints.history(id, { limit: 1 });
          return entries.map((entry) => ({ ...entry, status: newest?.status ?? entry.status }));
        },
      },
    }),
  },
  {
    name: 'gives the messages of today in each entry',
    breaks: ['H2', 'H3', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        history: async (id, options) => {
          const entries = await checkpoints.history(id, options);
          const messages = (await checkpoints.load(id))?.messages;
          return entries.map(({ checkpoint }) =>
            historyEntry(
              messages === undefined
                ? checkpoint
                : { ...checkpoint, messages: messages.slice(0, checkpoint.messages.length) },
            ),
          );
        },
      },
    }),
  },
  {
    name: 'keeps one entry too many',
    breaks: ['H3'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: noting(checkpoints.save, medium, (texts, text) => [...texts, text].slice(-51)),
    }),
  },
  {
    name: 'keeps the oldest entries',
    breaks: ['H3'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: noting(checkpoints.save, medium, (texts, text) => [...texts, text].slice(0, 50)),
    }),
  },
  {
    name: 'takes the limit 0 for none',
    breaks: ['H4', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: { history: (id, options) => checkpoints.history(id, options?.limit === 0 ? {} : options) },
    }),
  },
  {
    name: 'gives the oldest entries when there is a limit',
    breaks: ['H4', 'H5', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        history: async (id, { limit } = {}) => {
          const entries = await checkpoints.history(id);
          return limit === undefined || !(limit >= 0)
            ? entries
            : entries.slice(Math.max(0, entries.length - limit));
        },
      },
    }),
  },
  {
    name: 'has no history to give for an unknown id',
    breaks: ['C16', 'F2', 'H4', 'Z2', 'Z3', 'model/checkpoints'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        history: async (id, options) => {
          const entries = await checkpoints.history(id, options);
          if (!medium.histories.has(id))
            throw new SDKError('LOUSHO_STORE_READ_FAILED', { operation: 'history', id });
          return entries;
        },
      },
    }),
  },
  {
    name: 'leaves the last save of a run out of its history',
    breaks: ['H2', 'H5', 'Z2', 'Z3', 'Z4', 'model/checkpoints'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: noting(checkpoints.save, medium, (texts, text) =>
        text.includes('"status":"finished"') ? texts : [...texts, text].slice(-50),
      ),
    }),
  },
  {
    name: 'leaves the first save out of the history when a run follows another one',
    breaks: ['H5', 'model/checkpoints'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: noting(checkpoints.save, medium, (texts, text) => {
        const [before, next] = [texts.at(-1), text].map(
          (one) => JSON.parse(one ?? '{}') as Partial<Checkpoint>,
        );
        return before?.status === 'finished' && before.runId !== next?.runId
          ? texts
          : [...texts, text].slice(-50);
      }),
    }),
  },
  {
    name: 'begins the history anew after a delete',
    breaks: ['H6', 'model/checkpoints'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        save: async (id, checkpoint) => {
          if (!medium.latest.has(id)) medium.histories.delete(id);
          await checkpoints.save(id, checkpoint);
        },
      },
    }),
  },
];

type List = (options?: ListOptions) => Promise<readonly CheckpointListEntry[]>;
/** A store that changes what it lists. */
const listing = (list: List, change: (entries: CheckpointListEntry[]) => CheckpointListEntry[]) => ({
  list: async (options?: ListOptions) => change([...(await list(options))]),
});

export const listFlaws: readonly Flaw[] = [
  {
    name: 'lists what was deleted and kept its history',
    breaks: ['Q1', 'model/checkpoints'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        list: async (options) => {
          const entries = [...(await checkpoints.list(options))];
          for (const [id, texts] of medium.histories) {
            const checkpoint = JSON.parse(texts.at(-1) ?? 'null') as Checkpoint;
            if (!medium.latest.has(id))
              entries.push({ sessionId: id, status: checkpoint.status, checkpoint });
          }
          return entries;
        },
      },
    }),
  },
  {
    name: 'lists the first save of an id',
    breaks: ['F1', 'F2', 'Q1', 'Q4', 'Q6', 'model/checkpoints'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: listing(checkpoints.list, (entries) =>
        entries.map((entry) => {
          const first = medium.histories.get(entry.sessionId)?.[0];
          if (entry.checkpoint === null || first === undefined) return entry;
          return { ...entry, checkpoint: JSON.parse(first) as Checkpoint };
        }),
      ),
    }),
  },
  {
    name: 'lists ids that are only leased',
    breaks: ['Q1'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: listing(checkpoints.list, (entries) => {
        const leased = [...medium.leases.keys()].filter((id) => id === 'only-leased');
        return [...entries, ...leased.map((id) => listEntry(medium, id))];
      }),
    }),
  },
  {
    name: 'filters by the first status that it is asked for',
    breaks: ['Q2', 'Q6', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        list: ({ status } = {}) =>
          checkpoints.list(Array.isArray(status) ? { status: status.slice(0, 1) as never } : { status }),
      },
    }),
  },
  {
    name: 'takes an empty list of statuses for all',
    breaks: ['Q2', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: { list: (options) => checkpoints.list(options?.status?.length === 0 ? {} : options) },
    }),
  },
  {
    name: 'lists by id',
    breaks: ['Q3', 'Q6', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: listing(checkpoints.list, (entries) =>
        entries.sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1)),
      ),
    }),
  },
  {
    name: 'lists equal times without regard to case',
    breaks: ['Q3'],
    plant: ({ checkpoints }) => ({
      checkpoints: listing(checkpoints.list, (entries) =>
        entries.sort((a, b) => {
          const [timeA, timeB] = [a.checkpoint?.savedAt ?? '~', b.checkpoint?.savedAt ?? '~'];
          if (timeA !== timeB) return timeA < timeB ? -1 : 1;
          return a.sessionId.toLowerCase() < b.sessionId.toLowerCase() ? -1 : 1;
        }),
      ),
    }),
  },
  {
    name: 'leaves damage out of its lists',
    breaks: ['Q4', 'Q6'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        list: async (options) => (await checkpoints.list(options)).filter(({ error }) => error === undefined),
        listHeaders: async (options) =>
          (await checkpoints.listHeaders(options)).filter(({ error }) => error === undefined),
      },
    }),
  },
  {
    name: 'cannot list anything when one record is damaged',
    breaks: ['Q4'],
    plant: ({ checkpoints }) => ({
      checkpoints: listing(checkpoints.list, (entries) => {
        for (const { sessionId: id, error } of entries)
          if (error !== undefined)
            throw new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id, record: 'checkpoint' });
        return entries;
      }),
    }),
  },
  {
    name: 'reads the ids first, and fails on one that is gone by then',
    breaks: ['Q5'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        list: async (options) => {
          const ids = [...medium.latest.keys()];
          await turns();
          if (ids.some((id) => !medium.latest.has(id)))
            throw new SDKError('LOUSHO_STORE_READ_FAILED', { operation: 'list' });
          return checkpoints.list(options);
        },
      },
    }),
  },
  {
    name: 'reads statuses first and checkpoints later',
    breaks: ['Q5'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        list: async (options) => {
          const early = await checkpoints.list(options);
          await turns();
          const late = await checkpoints.list(options);
          return late.map((entry) => {
            const before = early.find(({ sessionId }) => sessionId === entry.sessionId);
            if (entry.checkpoint === null || !before?.checkpoint) return entry;
            return { ...entry, checkpoint: { ...entry.checkpoint, stepIndex: before.checkpoint.stepIndex } };
          });
        },
      },
    }),
  },
  {
    name: 'gives headers by id',
    breaks: ['Q6', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        listHeaders: async (options) =>
          [...(await checkpoints.listHeaders(options))].sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1)),
      },
    }),
  },
  {
    name: 'leaves damage out of the headers',
    breaks: ['Q6'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        listHeaders: async (options) =>
          (await checkpoints.listHeaders(options)).filter(({ error }) => error === undefined),
      },
    }),
  },
  {
    name: 'does not count messages in headers',
    breaks: ['Q6', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        listHeaders: async (options) =>
          (await checkpoints.listHeaders(options)).map((entry) => ({
            ...entry,
            header: entry.header && { ...entry.header, messageCount: 0 },
          })),
      },
    }),
  },
];
