/** Eventually consistent stores with best-effort leases that do not even keep the weaker sentences. */
import type { Flaw } from './flaw.ts';

export interface WeakFlaw extends Flaw {
  /** How the writes of others arrive. */
  readonly order?: 'newest first';
}

export const weakFlaws: readonly WeakFlaw[] = [
  {
    name: 'does not look at the leases of others in its third handle',
    breaks: ['L7', 'W1'],
    plant: ({ checkpoints }, medium, handles) => ({
      checkpoints: {
        acquireLease: async (id, owner, ttlMs) => {
          if (handles >= 2) medium.leases.delete(id);
          return checkpoints.acquireLease(id, owner, ttlMs);
        },
      },
    }),
  },
  {
    name: 'saves for whoever once had the lease on this handle',
    breaks: ['C18', 'F2', 'F4', 'W2'],
    plant({ checkpoints }, medium) {
      const had = new Set<string>();
      return {
        checkpoints: {
          async saveIfLeased(id, checkpoint, owner, fence) {
            const saved = await checkpoints.saveIfLeased(id, checkpoint, owner, fence);
            const key = `${id} ${owner}`;
            if (saved) had.add(key);
            if (saved || !had.has(key)) return saved;
            medium.save(id, checkpoint);
            return true;
          },
        },
      };
    },
  },
  {
    name: 'shows the writes of others in any order',
    breaks: [
      'C4',
      'C6',
      'C10',
      'C16',
      'L6',
      'L7',
      'L8',
      'L9',
      'L12',
      'L13',
      'F4',
      'H1',
      'H2',
      'H3',
      'H4',
      'Q1',
      'Q2',
      'Q4',
      'A8',
      'S7',
      'Z2',
      'Z3',
      'W3',
    ],
    order: 'newest first',
    plant: () => ({}),
  },
  {
    name: 'tells every caller that it removed the approval',
    breaks: ['A1', 'A8'],
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
    name: 'commits whatever the revision',
    breaks: ['S4', 'S6', 'S7'],
    plant: ({ sessions }, medium) => ({
      sessions: {
        saveIfRevision: async (record) => {
          const revision = medium.readSession(record.id)?.revision ?? 0;
          return sessions.saveIfRevision(record, revision);
        },
      },
    }),
  },
];
