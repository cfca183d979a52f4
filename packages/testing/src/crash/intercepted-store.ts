/** A store each of whose calls somebody carries out, loses or holds back. */
import type { AgentStore } from '@lousho/contract';

/**
 * `method` is for example `saveIfLeased` or `approvals.save`; `perform` asks the real store. A `close` only ends this view: the data behind
 * it lives on.
 */
export type Intercept = (
  method: string,
  args: readonly unknown[],
  perform: () => unknown,
) => Promise<unknown>;

/** Has the methods of the real one, the optional ones too, and none besides. */
export function interceptedStore(store: AgentStore, intercept: Intercept): AgentStore {
  const { checkpoints, approvals, sessions } = store;
  const parts = {
    ...(checkpoints && { checkpoints: interceptedPart(checkpoints, '', intercept) }),
    ...(approvals && { approvals: interceptedPart(approvals, 'approvals.', intercept) }),
    ...(sessions && { sessions: interceptedPart(sessions, 'sessions.', intercept) }),
  };
  const whole = interceptedPart(store, 'store.', intercept);
  return new Proxy(whole, {
    has: (_, key) => key in store,
    get: (_, key): unknown => (key in parts ? Reflect.get(parts, key) : Reflect.get(whole, key)),
  });
}

/** An empty object in front of the part: a frozen part would not let its own methods be replaced. */
function interceptedPart<Part extends object>(part: Part, prefix: string, intercept: Intercept): Part {
  return new Proxy({} as Part, {
    has: (_, key) => key in part,
    get(_, key) {
      const member: unknown = Reflect.get(part, key, part);
      if (typeof member !== 'function') return member;
      const method = `${prefix}${key === Symbol.asyncDispose ? 'close' : String(key)}`;
      return (...args: unknown[]) =>
        intercept(method, args, () =>
          method.endsWith('close') ? undefined : Reflect.apply(member, part, args),
        );
    },
  });
}
