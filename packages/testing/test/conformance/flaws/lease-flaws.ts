/** Stores that do something wrong with leases and with saves under them. */
import { holdsLease, SDKError, takeLease, type Lease } from '@lousho/contract';
import type { Medium } from '../plain-store.ts';
import { turns, type Flaw } from './flaw.ts';

/** Takes the lease whatever is known about it. */
function force(medium: Medium, id: string, owner: string, ttlMs: number): Lease {
  const fence = (medium.leases.get(id)?.fence ?? 0) + 1;
  medium.leases.set(id, {
    id,
    owner,
    ttlMs,
    fence,
    renewCount: 0,
    expiresAtMs: medium.clock.wallMs() + ttlMs,
  });
  return { fence };
}
const isFree = (medium: Medium, id: string): boolean =>
  medium.leases.get(id)?.released ?? !medium.leases.has(id);
/** Somebody else's lease that was not released. */
const othersLease = (medium: Medium, id: string, owner: string) => {
  const lease = medium.leases.get(id);
  return lease === undefined || lease.released === true || lease.owner === owner ? undefined : lease;
};

export const leaseFlaws: readonly Flaw[] = [
  {
    name: 'looks whether a lease is free, and takes it a moment later',
    breaks: ['L1'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        acquireLease: async (id, owner, ttlMs) => {
          const wasFree = isFree(medium, id);
          await turns();
          return wasFree ? force(medium, id, owner, ttlMs) : checkpoints.acquireLease(id, owner, ttlMs);
        },
      },
    }),
  },
  {
    name: 'gives a lease away when a tenth of its time is left',
    breaks: ['L2'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        acquireLease: async (id, owner, ttlMs) => {
          const lease = othersLease(medium, id, owner);
          const leftMs = (lease?.expiresAtMs ?? 0) - medium.clock.wallMs();
          const isNearEnd = lease !== undefined && leftMs > 0 && leftMs < lease.ttlMs / 10;
          return isNearEnd ? force(medium, id, owner, ttlMs) : checkpoints.acquireLease(id, owner, ttlMs);
        },
      },
    }),
  },
  {
    name: 'throws instead of refusing',
    breaks: ['L1', 'L2', 'L4', 'L5', 'L6', 'L8', 'L10', 'L12', 'model/leases'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        acquireLease: async (id, owner, ttlMs) => {
          const lease = await checkpoints.acquireLease(id, owner, ttlMs);
          if (lease === false) throw new SDKError('LOUSHO_SESSION_BUSY', { id } as never);
          return lease;
        },
      },
    }),
  },
  {
    name: 'waits three periods after the expiry',
    breaks: ['L3', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        acquireLease: async (id, owner, ttlMs) => {
          const lease = othersLease(medium, id, owner);
          const isEarly = lease !== undefined && medium.clock.wallMs() < lease.expiresAtMs + 3 * lease.ttlMs;
          return isEarly ? false : checkpoints.acquireLease(id, owner, ttlMs);
        },
      },
    }),
  },
  {
    name: 'gives an expired lease away at once',
    breaks: ['L4'],
    plant: (_right, medium) => ({
      checkpoints: {
        acquireLease: async (id, owner, ttlMs) => {
          const nowMs = medium.clock.wallMs();
          const taken = takeLease(medium.leases.get(id) ?? null, { id, owner, ttlMs, nowMs, graceMs: 0 });
          if (taken !== null) medium.leases.set(id, taken);
          return taken === null ? false : { fence: taken.fence };
        },
      },
    }),
  },
  {
    name: 'takes a holder for dead that it has seen for two periods, renewed or not',
    breaks: ['L5', 'model/leases'],
    plant({ checkpoints }, medium) {
      const seen = new Map<string, number>();
      return {
        checkpoints: {
          async acquireLease(id, owner, ttlMs) {
            const lease = othersLease(medium, id, owner);
            const key = `${id} ${lease?.fence}`;
            const sinceMs = seen.get(key) ?? medium.clock.monotonicMs();
            seen.set(key, sinceMs);
            const isDead = lease !== undefined && medium.clock.monotonicMs() - sinceMs >= 2 * lease.ttlMs;
            return isDead ? force(medium, id, owner, ttlMs) : checkpoints.acquireLease(id, owner, ttlMs);
          },
        },
      };
    },
  },
  {
    name: 'locks out an owner that asks again',
    breaks: ['L6', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        acquireLease: async (id, owner, ttlMs) =>
          medium.isHeld(id, owner) ? false : checkpoints.acquireLease(id, owner, ttlMs),
      },
    }),
  },
  {
    name: 'gives another fence to an owner that asks again',
    breaks: ['L6', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        acquireLease: async (id, owner, ttlMs) =>
          medium.isHeld(id, owner)
            ? force(medium, id, owner, ttlMs)
            : checkpoints.acquireLease(id, owner, ttlMs),
      },
    }),
  },
  {
    name: 'does not renew for an owner that asks again',
    breaks: ['L6', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        acquireLease: async (id, owner, ttlMs) => {
          const lease = medium.leases.get(id);
          return lease !== undefined && medium.isHeld(id, owner)
            ? { fence: lease.fence }
            : checkpoints.acquireLease(id, owner, ttlMs);
        },
      },
    }),
  },
  {
    name: 'begins to count fences anew after a delete',
    breaks: ['L7', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        delete: async (id, options) => {
          await checkpoints.delete(id, options);
          medium.leases.delete(id);
        },
      },
    }),
  },
  {
    name: 'begins to count fences anew after a release',
    breaks: ['L7', 'L9', 'L12', 'F4', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        releaseLease: async (id, owner, fence) => {
          const isHeld = medium.isHeld(id, owner, fence);
          await checkpoints.releaseLease(id, owner, fence);
          if (isHeld) medium.leases.delete(id);
        },
      },
    }),
  },
  {
    name: 'gives leases without a fence',
    breaks: ['L7'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        acquireLease: async (id: string, owner: string, ttlMs: number) =>
          (await checkpoints.acquireLease(id, owner, ttlMs)) !== false,
      } as never,
    }),
  },
  {
    name: 'does not renew what has expired',
    breaks: ['L8', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        renewLease: async (id, owner, ttlMs, fence) => {
          const isOver = medium.clock.wallMs() >= (medium.leases.get(id)?.expiresAtMs ?? Infinity);
          return isOver ? false : checkpoints.renewLease(id, owner, ttlMs, fence);
        },
      },
    }),
  },
  {
    name: 'takes a free lease when it is asked to renew it',
    breaks: ['C18', 'L1', 'L9', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        renewLease: async (id, owner, ttlMs, fence) => {
          if (!isFree(medium, id)) return checkpoints.renewLease(id, owner, ttlMs, fence);
          return (await checkpoints.acquireLease(id, owner, ttlMs)) !== false;
        },
      },
    }),
  },
  {
    name: 'renews the lease of whoever holds it',
    breaks: ['L9'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        renewLease: async (id, owner, ttlMs, fence) => {
          const lease = othersLease(medium, id, owner);
          await checkpoints.renewLease(id, lease?.owner ?? owner, ttlMs);
          return lease === undefined && medium.isHeld(id, owner, fence);
        },
      },
    }),
  },
  {
    name: 'renews under any fence',
    breaks: ['L9', 'model/leases'],
    plant: ({ checkpoints }) => ({
      checkpoints: { renewLease: (id, owner, ttlMs) => checkpoints.renewLease(id, owner, ttlMs) },
    }),
  },
  {
    name: 'counts the expiry from now with each renewal, also back',
    breaks: ['L10'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        renewLease: async (id, owner, ttlMs, fence) => {
          const renewed = await checkpoints.renewLease(id, owner, ttlMs, fence);
          const lease = medium.leases.get(id);
          if (renewed && lease)
            medium.leases.set(id, { ...lease, expiresAtMs: medium.clock.wallMs() + ttlMs });
          return renewed;
        },
      },
    }),
  },
  {
    name: 'keeps a released lease until it would have expired',
    breaks: ['L1', 'L7', 'L9', 'L11', 'L12', 'L13', 'F4', 'model/leases'],
    plant: (_right, medium) => ({
      checkpoints: {
        releaseLease: async (id, owner, fence) => {
          const lease = medium.leases.get(id);
          if (lease !== undefined && medium.isHeld(id, owner, fence))
            medium.leases.set(id, { ...lease, owner: '(nobody)' });
        },
      },
    }),
  },
  {
    name: 'releases a lease only when it is shown the fence',
    breaks: ['L11', 'model/leases'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        releaseLease: async (id, owner, fence) => {
          if (fence !== undefined) await checkpoints.releaseLease(id, owner, fence);
        },
      },
    }),
  },
  {
    name: 'releases a lease for anybody',
    breaks: ['L12', 'model/leases'],
    plant: (_right, medium) => ({ checkpoints: { releaseLease: async (id) => medium.endLease(id) } }),
  },
  {
    name: 'releases a lease under any fence',
    breaks: ['L12', 'model/leases'],
    plant: ({ checkpoints }) => ({
      checkpoints: { releaseLease: (id, owner) => checkpoints.releaseLease(id, owner) },
    }),
  },
  {
    name: 'lists leases that were released',
    breaks: ['L13'],
    plant: (_right, medium) => ({
      checkpoints: {
        heldLeases: async () => [...medium.leases.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
      },
    }),
  },
  {
    name: 'leaves expired leases out of their list',
    breaks: ['L13'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        heldLeases: async () => {
          const held = (await checkpoints.heldLeases?.()) ?? [];
          return held.filter(({ expiresAtMs }) => medium.clock.wallMs() < expiresAtMs);
        },
      },
    }),
  },
];

export const fencingFlaws: readonly Flaw[] = [
  {
    name: 'refuses the save of a holder that is late',
    breaks: ['F1', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        saveIfLeased: async (id, checkpoint, owner, fence) => {
          const isOver = medium.clock.wallMs() >= (medium.leases.get(id)?.expiresAtMs ?? Infinity);
          return isOver ? false : checkpoints.saveIfLeased(id, checkpoint, owner, fence);
        },
      },
    }),
  },
  {
    name: 'leaves saves under a lease out of the history',
    breaks: ['F1', 'F2', 'F4'],
    plant: (_right, medium) => ({
      checkpoints: {
        saveIfLeased: async (id, checkpoint, owner, fence) => {
          if (!medium.isHeld(id, owner, fence)) return false;
          medium.latest.set(id, JSON.stringify(checkpoint));
          return true;
        },
      },
    }),
  },
  {
    name: 'saves for a former holder and then says no',
    breaks: ['C18', 'F2', 'F3', 'F4', 'model/leases'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        saveIfLeased: async (id, checkpoint, owner, fence) => {
          const saved = await checkpoints.saveIfLeased(id, checkpoint, owner, fence);
          if (!saved && medium.leases.has(id)) medium.save(id, checkpoint);
          return saved;
        },
      },
    }),
  },
  {
    name: 'notes refused saves in the history',
    breaks: ['F2', 'F4'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        saveIfLeased: async (id, checkpoint, owner, fence) => {
          const saved = await checkpoints.saveIfLeased(id, checkpoint, owner, fence);
          const texts = medium.histories.get(id);
          if (!saved && texts) medium.histories.set(id, [...texts, JSON.stringify(checkpoint)]);
          return saved;
        },
      },
    }),
  },
  {
    name: 'notes refused saves of other owners in the history',
    breaks: ['F2'],
    plant: ({ checkpoints }, medium) => ({
      checkpoints: {
        saveIfLeased: async (id, checkpoint, owner, fence) => {
          const saved = await checkpoints.saveIfLeased(id, checkpoint, owner, fence);
          const texts = medium.histories.get(id);
          const isOthers = medium.leases.get(id)?.owner !== owner;
          if (!saved && isOthers && texts) medium.histories.set(id, [...texts, JSON.stringify(checkpoint)]);
          return saved;
        },
      },
    }),
  },
  {
    name: 'looks at the lease, and writes a moment later',
    breaks: ['F3'],
    plant: (_right, medium) => ({
      checkpoints: {
        saveIfLeased: async (id, checkpoint, owner, fence) => {
          if (!holdsLease(medium.leases.get(id) ?? null, owner, fence)) return false;
          await turns();
          medium.save(id, checkpoint);
          return true;
        },
      },
    }),
  },
  {
    name: 'compares the owner of a save and not its fence',
    breaks: ['F4', 'model/leases'],
    plant: ({ checkpoints }) => ({
      checkpoints: {
        saveIfLeased: (id, checkpoint, owner) => checkpoints.saveIfLeased(id, checkpoint, owner),
      },
    }),
  },
];
