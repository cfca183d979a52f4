// A store whose leases and acknowledged saves are on record. With a fault planted it is a store that breaks its promises, for checks of
// the checker.
import { currentOperation } from './effect-log.mjs';
import { nowMs } from './turn-clock.mjs';
import { digestOf } from './transcript-digest.mjs';

/** `beforeSave(checkpoint)`: may hold a save back; `beforeLease(id)` hears of it first. */
export function observedStore(
  store,
  { log, beforeSave = async () => undefined, beforeLease = () => undefined, fault },
) {
  const checkpoints = fault === 'no-fence' ? withoutFence(store.checkpoints) : store.checkpoints;
  const observed = overriding(checkpoints, {
    async acquireLease(id, owner, ttlMs) {
      beforeLease(id);
      const askedAt = nowMs();
      const lease = await checkpoints.acquireLease(id, owner, ttlMs);
      if (lease === false) return false;
      // From here on it is about this run: a turn, of an operation that was about a session.
      Object.assign(currentOperation.getStore(), { session: id, fence: lease.fence });
      log.write({ kind: 'lease.taken', askedAt });
      return lease;
    },
    async renewLease(id, owner, ttlMs, fence) {
      const askedAt = nowMs();
      const isHeld = await checkpoints.renewLease(id, owner, ttlMs, fence);
      if (isHeld) log.write({ kind: 'lease.renewed', askedAt });
      return isHeld;
    },
    async releaseLease(id, owner, fence) {
      log.write({ kind: 'lease.releasing' });
      await checkpoints.releaseLease(id, owner, fence);
    },
    async delete(id, options) {
      log.write({ kind: 'run.deleting', session: id });
      await checkpoints.delete(id, options);
    },
    async saveIfLeased(id, checkpoint, owner, fence) {
      await beforeSave(checkpoint);
      const askedAt = nowMs();
      const isSaved = await checkpoints.saveIfLeased(id, checkpoint, owner, fence);
      if (isSaved) log.write({ kind: 'save.acknowledged', askedAt, digest: digestOf(checkpoint) });
      return isSaved;
    },
  });
  return overriding(store, { checkpoints: observed });
}

/** Everybody gets the lease, and whoever saves last wins. */
function withoutFence(checkpoints) {
  return overriding(checkpoints, {
    acquireLease: async () => ({ fence: Math.floor(nowMs() * 1000) }),
    renewLease: async () => true,
    releaseLease: async () => undefined,
    async saveIfLeased(id, checkpoint) {
      await checkpoints.save(id, checkpoint);
      return true;
    },
  });
}

/** A store is an object with private fields: its own methods need it as `this`. */
function overriding(target, methods) {
  return new Proxy(target, {
    get(object, name) {
      if (Object.hasOwn(methods, name)) return methods[name];
      const value = object[name];
      return typeof value === 'function' ? value.bind(object) : value;
    },
  });
}
