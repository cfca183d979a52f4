/** Stores that do something wrong with approvals and sessions. */
import {
  assertCheckpointId,
  isCheckpointId,
  SDKError,
  type ApprovalRecord,
  type SessionRecord,
} from '@lousho/contract';
import { rememberPerStorage, turns, type Flaw } from './flaw.ts';

const deletedApprovals = rememberPerStorage<ApprovalRecord>();
const deletedRevisions = rememberPerStorage<number>();
const isCorrupt = (error: unknown): boolean =>
  error instanceof SDKError && error.code === 'LOUSHO_CHECKPOINT_CORRUPT';

export const approvalFlaws: readonly Flaw[] = [
  {
    name: 'refuses a malformed id of an approval',
    breaks: ['A1'],
    plant: ({ approvals }) => ({
      approvals: {
        load: async (id) => {
          assertCheckpointId(id);
          return approvals.load(id);
        },
      },
    }),
  },
  {
    name: 'throws what its driver throws when it deletes a malformed id',
    breaks: ['A1'],
    plant: ({ approvals }) => ({
      approvals: {
        delete: async (id) => {
          if (id.includes('\u0000')) throw new TypeError('no zero in a key');
          return approvals.delete(id);
        },
      },
    }),
  },
  {
    name: 'merges an approval into what is stored',
    breaks: ['A2', 'model/approvals'],
    plant: ({ approvals }, medium) => ({
      approvals: {
        save: async (record) => {
          const before = JSON.parse(medium.approvals.get(record.id) ?? '{}') as object;
          await approvals.save({ ...before, ...record });
        },
      },
    }),
  },
  {
    name: 'drops the snapshot of an approval',
    breaks: ['A3'],
    plant: ({ approvals }) => ({
      approvals: { save: ({ snapshot: _snapshot, ...record }) => approvals.save(record) },
    }),
  },
  {
    name: 'drops a field of an approval that it does not know',
    breaks: ['A3'],
    plant: ({ approvals }) => ({
      approvals: { save: (record) => approvals.save({ ...record, future: undefined } as ApprovalRecord) },
    }),
  },
  {
    name: 'finds an approval by the beginning of its id',
    breaks: ['A4'],
    plant: ({ approvals }, medium) => ({
      approvals: {
        load: async (id) => {
          const found = [...medium.approvals.keys()].find((other) => id.length > 4 && other.startsWith(id));
          return approvals.load(found ?? id);
        },
      },
    }),
  },
  {
    name: 'takes a damaged approval for an unknown one',
    breaks: ['A5'],
    plant: ({ approvals }) => ({
      approvals: {
        load: async (id) => {
          try {
            return await approvals.load(id);
          } catch (error) {
            if (isCorrupt(error)) return null;
            throw error;
          }
        },
      },
    }),
  },
  {
    name: 'lists approvals by id',
    breaks: ['A6', 'model/approvals'],
    plant: ({ approvals }) => ({
      approvals: {
        list: async (options) => [...(await approvals.list(options))].sort((a, b) => (a.id < b.id ? -1 : 1)),
      },
    }),
  },
  {
    name: 'lists the approvals of sessions that begin with the one asked for',
    breaks: ['A6'],
    plant: ({ approvals }) => ({
      approvals: {
        list: async ({ sessionId } = {}) =>
          (await approvals.list()).filter(
            (record) => sessionId === undefined || record.sessionId?.startsWith(sessionId),
          ),
      },
    }),
  },
  {
    name: 'cannot list approvals when one is damaged',
    breaks: ['A7'],
    plant: ({ approvals }, medium) => ({
      approvals: {
        list: async (options) => {
          const listed = await approvals.list(options);
          for (const id of medium.approvals.keys()) await approvals.load(id);
          return listed;
        },
      },
    }),
  },
  {
    name: 'tells every caller that it removed the approval',
    breaks: ['A1', 'A8', 'model/approvals'],
    plant: ({ approvals }) => ({
      approvals: {
        delete: async (id) => {
          await approvals.delete(id);
          return true;
        },
      },
    }),
  },
  {
    name: 'looks whether an approval is there, and removes it a moment later',
    breaks: ['A8'],
    plant: ({ approvals }, medium) => ({
      approvals: {
        delete: async (id) => {
          const wasThere = medium.approvals.has(id);
          await turns();
          await approvals.delete(id);
          return wasThere;
        },
      },
    }),
  },
  {
    name: 'still loads an approval that was deleted',
    breaks: ['A9', 'model/approvals'],
    plant: ({ approvals }, medium) => ({
      approvals: {
        delete: async (id) => {
          const record = await approvals.load(id);
          if (record) deletedApprovals(medium).set(id, record);
          return approvals.delete(id);
        },
        load: async (id) => (await approvals.load(id)) ?? deletedApprovals(medium).get(id) ?? null,
      },
    }),
  },
];

export const sessionFlaws: readonly Flaw[] = [
  {
    name: 'takes a run for a session',
    breaks: ['S1'],
    plant: ({ sessions, checkpoints }) => ({
      sessions: {
        load: async (id) =>
          (await sessions.load(id)) ?? ((await checkpoints.load(id)) as SessionRecord | null),
      },
    }),
  },
  {
    name: 'drops a field of a session that it does not know',
    breaks: ['S2'],
    plant: ({ sessions }) => ({
      sessions: {
        saveIfRevision: (record, expected) =>
          sessions.saveIfRevision({ ...record, future: undefined } as SessionRecord, expected),
      },
    }),
  },
  {
    name: 'only ever appends to a session',
    breaks: ['S2', 'model/sessions'],
    plant: ({ sessions }) => ({
      sessions: {
        saveIfRevision: async (record, expected) => {
          const given = structuredClone(record);
          const before = (await sessions.load(record.id))?.messages ?? [];
          return sessions.saveIfRevision(
            { ...given, messages: [...before, ...given.messages.slice(before.length)] },
            expected,
          );
        },
      },
    }),
  },
  {
    name: 'takes a damaged session for an absent one',
    breaks: ['S3'],
    plant: ({ sessions }) => ({
      sessions: {
        load: async (id) => {
          try {
            return await sessions.load(id);
          } catch (error) {
            if (isCorrupt(error)) return null;
            throw error;
          }
        },
      },
    }),
  },
  {
    name: 'calls a damaged session a checkpoint',
    breaks: ['S3'],
    plant: ({ sessions }) => ({
      sessions: {
        load: (id) =>
          Promise.resolve(sessions.load(id)).catch((error: unknown) => {
            throw isCorrupt(error)
              ? new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id, record: 'checkpoint' })
              : error;
          }),
      },
    }),
  },
  {
    name: 'compares the revision, and writes a moment later',
    breaks: ['S4'],
    plant: (_right, medium) => ({
      sessions: {
        saveIfRevision: async (record, expected) => {
          assertCheckpointId(record.id);
          const text = JSON.stringify({ ...record, revision: expected + 1 });
          if ((medium.readSession(record.id)?.revision ?? 0) !== expected) return false;
          await turns();
          medium.sessions.set(record.id, text);
          return true;
        },
      },
    }),
  },
  {
    name: 'believes a revision that is higher than its own',
    breaks: ['S5'],
    plant: ({ sessions }, medium) => ({
      sessions: {
        saveIfRevision: async (record, expected) => {
          const said = record.revision;
          const saved = await sessions.saveIfRevision(record, expected);
          const stored = medium.readSession(record.id);
          if (saved && stored && said > expected + 1)
            medium.sessions.set(record.id, JSON.stringify({ ...stored, revision: said }));
          return saved;
        },
      },
    }),
  },
  {
    name: 'notes the time of a refused commit',
    breaks: ['S6', 'model/sessions'],
    plant: ({ sessions }, medium) => ({
      sessions: {
        saveIfRevision: async (record, expected) => {
          const saved = await sessions.saveIfRevision(record, expected);
          const stored = medium.readSession(record.id);
          if (!saved && stored)
            medium.sessions.set(record.id, JSON.stringify({ ...stored, refusedAt: 'now' }));
          return saved;
        },
      },
    }),
  },
  {
    name: 'stores a first commit whatever revision it expects',
    breaks: ['S6', 'S7', 'model/sessions'],
    plant: ({ sessions }, medium) => ({
      sessions: {
        saveIfRevision: (record, expected) =>
          sessions.saveIfRevision(record, medium.sessions.has(record.id) ? expected : 0),
      },
    }),
  },
  {
    name: 'goes on counting after a delete',
    breaks: ['S7', 'model/sessions'],
    plant: ({ sessions }, medium) => ({
      sessions: {
        delete: async (id) => {
          const revision = medium.sessions.get(id)?.startsWith('#')
            ? undefined
            : medium.readSession(id)?.revision;
          if (revision !== undefined) deletedRevisions(medium).set(id, revision);
          await sessions.delete(id);
        },
        saveIfRevision: async (record, expected) => {
          const revision = medium.sessions.has(record.id)
            ? undefined
            : deletedRevisions(medium).get(record.id);
          if (revision === undefined) return sessions.saveIfRevision(record, expected);
          if (revision !== expected) return false;
          medium.sessions.set(record.id, JSON.stringify({ ...record, revision: expected + 1 }));
          return true;
        },
      },
    }),
  },
  {
    name: 'reads a session that it deletes',
    breaks: ['S7'],
    plant: ({ sessions }) => ({
      sessions: {
        delete: async (id) => {
          await sessions.load(id);
          await sessions.delete(id);
        },
      },
    }),
  },
  {
    name: 'lists sessions that were deleted',
    breaks: ['S8', 'model/sessions'],
    plant: ({ sessions }, medium) => ({
      sessions: {
        delete: async (id) => {
          if (medium.sessions.has(id)) deletedRevisions(medium).set(id, 0);
          await sessions.delete(id);
        },
        list: async () => [...new Set([...(await sessions.list()), ...deletedRevisions(medium).keys()])],
      },
    }),
  },
  {
    name: 'lists a run as a session',
    breaks: ['S8'],
    plant: ({ sessions }, medium) => ({
      sessions: { list: async () => [...(await sessions.list()), ...medium.latest.keys()] },
    }),
  },
  {
    name: 'throws a plain error for a malformed id of a session',
    breaks: ['S9'],
    plant: ({ sessions }) => ({
      sessions: {
        load: async (id) => {
          if (!isCheckpointId(id)) throw new Error('invalid id');
          return sessions.load(id);
        },
      },
    }),
  },
];
