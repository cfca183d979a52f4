/** Stores of somebody else: a whole one with methods replaced, watched or left out. */
import type { AgentStore, CheckpointStore } from '@lousho/contract';

type Method = Exclude<keyof CheckpointStore, 'claims'>;

/** The same data through another object. `undefined` leaves a method out. */
export function checkpointsWith(
  base: CheckpointStore,
  changes: { readonly [Name in keyof CheckpointStore]?: CheckpointStore[Name] | undefined },
): CheckpointStore {
  return new Proxy({} as CheckpointStore, {
    has: (_, key) => Reflect.get(changes, key) !== undefined || (!(key in changes) && key in base),
    get(_, key) {
      const member: unknown = Reflect.get(key in changes ? changes : base, key);
      return typeof member === 'function' ? (member as () => unknown).bind(base) : member;
    },
  });
}

export function checkpointsWithout(base: CheckpointStore, ...methods: readonly Method[]): CheckpointStore {
  return checkpointsWith(base, Object.fromEntries(methods.map((method) => [method, undefined])));
}

/** The three methods that a store must have, and nothing else. */
export function threeMethods(base: CheckpointStore): CheckpointStore {
  return {
    save: (id, checkpoint) => base.save(id, checkpoint),
    load: (id) => base.load(id),
    delete: (id, options) => base.delete(id, options),
  };
}

/** Notes every call of the store's methods, in order. */
export function watched(
  base: CheckpointStore,
  log: (method: Method, args: readonly unknown[]) => void,
): CheckpointStore {
  return new Proxy({} as CheckpointStore, {
    has: (_, key) => key in base,
    get(_, key) {
      const member: unknown = Reflect.get(base, key);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        log(key as Method, args);
        return Reflect.apply(member, base, args);
      };
    },
  });
}

/** An agent's store of these parts. */
export function storeOf(
  checkpoints: CheckpointStore,
  rest: Omit<AgentStore, 'checkpoints'> = {},
): AgentStore {
  return { checkpoints, ...rest };
}
