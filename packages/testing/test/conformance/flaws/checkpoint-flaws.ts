/** Stores that do something wrong with checkpoints. */
import {
  isCheckpointId,
  deepFreeze,
  SDKError,
  type Checkpoint,
  type DeleteOptions,
  type FullCheckpointStore,
} from '@lousho/contract';
import type { Medium } from '../plain-store.ts';
import { rememberPerStorage, turns, type Flaw } from './flaw.ts';

const invalid = (id: string): SDKError =>
  new SDKError('LOUSHO_SESSION_ID_INVALID', { sessionId: id, rule: 'no' });
/** A store that stores another text than it should. */
const writing = (medium: Medium, change: (text: string) => string): Partial<FullCheckpointStore> => ({
  save: async (id, checkpoint) => medium.write(id, change(JSON.stringify(checkpoint))),
});
/** A store that stores another value than it should. */
const saving = (
  medium: Medium,
  change: (checkpoint: Checkpoint, id: string) => object,
): Partial<FullCheckpointStore> => ({
  save: async (id, checkpoint) => medium.write(id, JSON.stringify(change(checkpoint, id))),
});
const busyIds = rememberPerStorage<true>();
const heardOf = rememberPerStorage<true>();
const isCode = (error: unknown, code: string): boolean => error instanceof SDKError && error.code === code;

export const checkpointFlaws: readonly Flaw[] = [
  {
    name: 'takes a malformed id for an unknown one',
    breaks: ['C1'],
    plant: ({ checkpoints }) => ({
      isUnguarded: true,
      checkpoints: { load: async (id) => (isCheckpointId(id) ? checkpoints.load(id) : null) },
    }),
  },
  {
    name: 'refuses ids of more than 200 characters',
    breaks: ['C1'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        save: async (id, checkpoint) => {
          if (id.length > 200) throw invalid(id);
          await checkpoints.save(id, checkpoint);
        },
      },
    }),
  },
  {
    name: 'writes before it looks at the id',
    breaks: ['C1'],
    plant: ({ checkpoints }, medium) => ({
      isUnguarded: true,
      checkpoints: {
        save: async (id, checkpoint) => {
          if (id.endsWith('.')) medium.save(id, checkpoint);
          await checkpoints.save(id, checkpoint);
        },
      },
    }),
  },
  {
    name: 'throws a plain error for a malformed id',
    breaks: ['C1', 'C3'],
    plant: ({ checkpoints }) => ({
      isUnguarded: true,
      checkpoints: {
        save: async (id, checkpoint) => {
          if (!isCheckpointId(id)) throw new Error('invalid id');
          await checkpoints.save(id, checkpoint);
        },
      },
    }),
  },
  {
    name: 'keeps one lease for ids that differ in case',
    breaks: ['C2', 'L13'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        acquireLease: (id, owner, ttlMs) => checkpoints.acquireLease(id.toLowerCase(), owner, ttlMs),
      },
    }),
  },
  {
    name: 'deletes every id that begins with the one it was given',
    breaks: ['C2', 'model/checkpoints'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        delete: async (id, options) => {
          for (const other of medium.latest.keys())
            if (other.startsWith(`${id}.`)) await checkpoints.delete(other, options);
          await checkpoints.delete(id, options);
        },
      },
    }),
  },
  {
    name: 'keeps one history for ids that differ in case',
    breaks: ['C2'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        save: async (id, checkpoint) => {
          await checkpoints.save(id, checkpoint);
          if (id === id.toLowerCase()) return;
          medium.histories.set(id.toLowerCase(), medium.histories.get(id) ?? []);
        },
      },
    }),
  },
  {
    name: 'throws what its driver throws for a limit that is no number',
    breaks: ['C3'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        history: async (id, options) => {
          if (Number.isNaN(options?.limit)) throw new RangeError('LIMIT NaN');
          return checkpoints.history(id, options);
        },
      },
    }),
  },
  {
    name: 'shows a handle what it loaded before, until that handle writes',
    breaks: [
      'C2',
      'C4',
      'C5',
      'C6',
      'C9',
      'C10',
      'C12',
      'C16',
      'F1',
      'F2',
      'F4',
      'H5',
      'model/checkpoints',
      'model/leases',
    ],
    plant({ checkpoints }) {
      const loaded = new Map<string, Checkpoint | null>();
      return {
        checkpoints: {
          async load(id) {
            const value = loaded.get(id) ?? (await checkpoints.load(id));
            loaded.set(id, value);
            return value;
          },
          async save(id, checkpoint) {
            loaded.delete(id);
            await checkpoints.save(id, checkpoint);
          },
          async delete(id, options) {
            loaded.delete(id);
            await checkpoints.delete(id, options);
          },
        },
      };
    },
  },
  {
    name: 'takes its own last save of a step for the newest',
    breaks: ['C4', 'model/checkpoints'],
    plant({ checkpoints }) {
      const own = new Map<string, Checkpoint>();
      return {
        checkpoints: {
          async save(id, checkpoint) {
            own.set(id, structuredClone(checkpoint));
            await checkpoints.save(id, checkpoint);
          },
          async load(id) {
            const [loaded, mine] = [await checkpoints.load(id), own.get(id)];
            const isSameStep =
              loaded?.stepIndex === mine?.stepIndex && loaded?.traceparent === mine?.traceparent;
            return loaded !== null && mine !== undefined && isSameStep ? deepFreeze(mine) : loaded;
          },
        },
      };
    },
  },
  {
    name: 'takes a run for the one that it knows when both were saved as often',
    // C6 saves more often than the history, by whose length this one counts, is long.
    breaks: ['C4', 'C6'],
    plant({ checkpoints }, medium) {
      const known = new Map<string, { readonly saves: number; readonly text: string }>();
      const remember = (id: string): void => {
        const saves = medium.histories.get(id)?.length ?? 0;
        known.set(id, { saves, text: medium.latest.get(id) ?? '' });
      };
      return {
        checkpoints: {
          async save(id, checkpoint) {
            const saving = checkpoints.save(id, checkpoint);
            remember(id);
            await saving;
          },
          async saveIfLeased(id, checkpoint, owner, fence) {
            const saving = checkpoints.saveIfLeased(id, checkpoint, owner, fence);
            remember(id);
            return saving;
          },
          async load(id) {
            const memory = known.get(id);
            const isKnown = memory !== undefined && memory.saves === (medium.histories.get(id)?.length ?? 0);
            if (isKnown && medium.latest.has(id)) return deepFreeze(JSON.parse(memory.text) as Checkpoint);
            remember(id);
            return checkpoints.load(id);
          },
        },
      };
    },
  },
  {
    name: 'merges a save into what is stored',
    breaks: ['C5', 'C12', 'H2', 'H5', 'model/checkpoints'],
    plant: (_right, medium) => ({
      checkpoints: saving(medium, (checkpoint, id) => ({
        ...(JSON.parse(medium.latest.get(id)?.replace(/^#damaged /, '') ?? '{}') as object),
        ...checkpoint,
      })),
    }),
  },
  {
    name: 'keeps for whom the save before was made',
    breaks: ['C5'],
    plant: (_right, medium) => ({
      checkpoints: saving(medium, (checkpoint, id) => {
        const before = JSON.parse(medium.latest.get(id)?.replace(/^#damaged /, '') ?? '{}') as Checkpoint;
        return { ...(before.principal && { principal: before.principal }), ...checkpoint };
      }),
    }),
  },
  {
    name: 'loads the messages a moment after the header',
    breaks: ['C6'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        load: async (id) => {
          const header = await checkpoints.load(id);
          if (header === null) return null;
          await turns();
          return { ...header, messages: (await checkpoints.load(id))?.messages ?? [] };
        },
      },
    }),
  },
  {
    name: 'writes the header first and the messages a moment later',
    breaks: ['C6', 'Q5'],
    plant: (_right, medium) => ({
      checkpoints: {
        save: async (id, checkpoint) => {
          const whole = JSON.stringify(checkpoint);
          const before = medium.latest.get(id);
          if (before !== undefined && !before.startsWith('#')) {
            const { messages } = JSON.parse(before) as Checkpoint;
            medium.latest.set(id, JSON.stringify({ ...(JSON.parse(whole) as Checkpoint), messages }));
          }
          await turns();
          medium.write(id, whole);
        },
      },
    }),
  },
  {
    name: 'cannot load while a save is under way',
    breaks: ['C6'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        save: async (id, checkpoint) => {
          const text = JSON.stringify(checkpoint);
          busyIds(medium).set(id, true);
          await turns();
          busyIds(medium).delete(id);
          medium.write(id, text);
        },
        load: async (id) => {
          if (busyIds(medium).has(id))
            throw new SDKError('LOUSHO_STORE_READ_FAILED', { operation: 'load', id });
          return checkpoints.load(id);
        },
      },
    }),
  },
  {
    name: 'clears what is stored before it writes',
    breaks: ['C9'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        save: async (id, checkpoint) => {
          medium.latest.delete(id);
          await checkpoints.save(id, checkpoint);
        },
      },
    }),
  },
  {
    name: 'notes a save in the history before it knows that it works',
    breaks: ['C9'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        save: async (id, checkpoint) => {
          try {
            await checkpoints.save(id, checkpoint);
          } catch (error) {
            const before = medium.latest.get(id);
            if (before !== undefined) medium.histories.set(id, [...(medium.histories.get(id) ?? []), before]);
            throw error;
          }
        },
      },
    }),
  },
  {
    name: 'holds half a megabyte',
    breaks: ['C10'],
    plant: (_right, medium) => ({
      checkpoints: writing(medium, (text) => {
        if (text.length > 400_000)
          throw new SDKError('LOUSHO_CHECKPOINT_TOO_LARGE', {
            id: '',
            bytes: text.length,
            maxBytes: 400_000,
          });
        return text;
      }),
    }),
  },
  {
    name: 'throws what its driver throws for three megabytes',
    breaks: ['C10'],
    plant: (_right, medium) => ({
      checkpoints: writing(medium, (text) => {
        if (text.length > 1_500_000) throw new Error('value too large');
        return text;
      }),
    }),
  },
  {
    name: 'gives an empty record for an id that it does not know',
    breaks: ['C2', 'C11', 'C16', 'C17', 'C18', 'F2', 'Z2', 'Z3', 'model/checkpoints', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        load: async (id) => {
          const isUnknown = !medium.latest.has(id) && !medium.histories.has(id);
          return isUnknown ? ({} as Checkpoint) : checkpoints.load(id);
        },
      },
    }),
  },
  {
    name: 'gives an empty record for an id that it has never heard of',
    breaks: ['C11', 'model/checkpoints'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        load: async (id) => (heardOf(medium).has(id) ? checkpoints.load(id) : ({} as Checkpoint)),
        save: async (id, checkpoint) => {
          heardOf(medium).set(id, true);
          await checkpoints.save(id, checkpoint);
        },
        saveIfLeased: async (id, checkpoint, owner, fence) => {
          heardOf(medium).set(id, true);
          return checkpoints.saveIfLeased(id, checkpoint, owner, fence);
        },
      },
    }),
  },
  {
    name: 'drops a field that it does not know',
    breaks: ['C12'],
    plant: (_right, medium) => ({
      checkpoints: saving(medium, (checkpoint) => ({ ...checkpoint, future: undefined })),
    }),
  },
  {
    name: 'drops a field of a message that it does not know',
    breaks: ['C12'],
    plant: (_right, medium) => ({
      checkpoints: saving(medium, (checkpoint) => ({
        ...checkpoint,
        messages: checkpoint.messages.map((message) => ({ ...message, future: undefined })),
      })),
    }),
  },
  {
    name: 'copies an object by assigning its members',
    breaks: ['C12'],
    plant: (_right, medium) => ({
      checkpoints: saving(medium, (checkpoint) => {
        const copy: Record<string, unknown> = {};
        for (const [key, value] of Object.entries(checkpoint)) copy[key] = value;
        return copy;
      }),
    }),
  },
  {
    name: 'stores texts as Latin-1',
    breaks: ['C12'],
    plant: (_right, medium) => ({
      checkpoints: writing(medium, (text) => text.replaceAll(/[^\u0000-\u00ff]/g, '?')),
    }),
  },
  {
    name: 'reads what it is given a moment later',
    breaks: ['C13'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        save: async (id, checkpoint) => {
          await Promise.resolve();
          await checkpoints.save(id, checkpoint);
        },
      },
    }),
  },
  {
    name: 'returns the object that it keeps',
    breaks: ['C13'],
    plant({ checkpoints }, medium) {
      const kept = new Map<string, Checkpoint>();
      return {
        checkpoints: {
          async load(id) {
            const text = medium.latest.get(id) ?? '';
            const loaded = await checkpoints.load(id);
            if (loaded === null || kept.has(text)) return kept.get(text) ?? loaded;
            kept.set(text, structuredClone(loaded));
            return kept.get(text) ?? null;
          },
        },
      };
    },
  },
  {
    name: 'takes damage for an absent checkpoint',
    breaks: ['C14'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        load: (id) =>
          checkpoints.load(id).catch((error: unknown) => {
            if (isCode(error, 'LOUSHO_CHECKPOINT_CORRUPT')) return null;
            throw error;
          }),
      },
    }),
  },
  {
    name: 'goes back to the save before the damaged one',
    breaks: ['C14'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        load: (id) =>
          checkpoints.load(id).catch(async (error: unknown) => {
            if (!isCode(error, 'LOUSHO_CHECKPOINT_CORRUPT')) throw error;
            return (await checkpoints.history(id))[1]?.checkpoint ?? null;
          }),
      },
    }),
  },
  {
    name: 'gives an older format as it is',
    breaks: ['C15'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        load: async (id) => {
          const loaded = await checkpoints.load(id);
          const stored = JSON.parse(medium.latest.get(id) ?? 'null') as Checkpoint | null;
          return stored?.version === undefined ? stored : loaded;
        },
      },
    }),
  },
  {
    name: 'reads a newer format as its own',
    breaks: ['C15'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        load: (id) =>
          checkpoints.load(id).catch((error: unknown) => {
            if (!isCode(error, 'LOUSHO_STORE_VERSION_UNSUPPORTED')) throw error;
            return JSON.parse(medium.latest.get(id) ?? 'null') as Checkpoint;
          }),
      },
    }),
  },
  {
    name: 'leaves the history of what it deletes',
    breaks: ['C16', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: { delete: (id) => checkpoints.delete(id, { keepHistory: true }) },
    }),
  },
  {
    name: 'deletes the history that it should keep',
    breaks: ['C16', 'H6', 'Z2', 'Z4', 'model/checkpoints'],
    plant: ({ checkpoints }) => ({
      checkpoints: { delete: (id: string, _options?: DeleteOptions) => checkpoints.delete(id) },
    }),
  },
  {
    name: 'reads what it deletes',
    breaks: ['C17'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        delete: async (id, options) => {
          await checkpoints.load(id);
          await checkpoints.delete(id, options);
        },
      },
    }),
  },
  {
    name: 'fails to delete what is not there',
    breaks: ['C17', 'L7', 'L9', 'L13', 'model/checkpoints', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        delete: async (id, options) => {
          const wasThere = medium.latest.has(id);
          await checkpoints.delete(id, options);
          if (!wasThere) throw new SDKError('LOUSHO_STORE_WRITE_FAILED', { operation: 'delete', id });
        },
      },
    }),
  },
  {
    name: 'lets the lease outlive a run that it deletes',
    breaks: ['C18', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        delete: async (id, options) => {
          const lease = medium.latest.has(id) ? medium.leases.get(id) : undefined;
          await checkpoints.delete(id, options);
          if (lease !== undefined) medium.leases.set(id, lease);
        },
      },
    }),
  },
];
