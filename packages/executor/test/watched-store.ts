/** A store that shows what is asked of it, and fails where a test says so. */
import type { AgentStore, Checkpoint } from '@lousho/contract';

export interface WatchedStore extends AgentStore {
  /** Acknowledged saves of checkpoints, oldest first. */
  readonly saves: Checkpoint[];
  /** `saveIfLeased`, `approvals.save`, ... in the order in which they were asked. */
  readonly calls: string[];
  /** Runs before each call; what it throws the call rejects with, and nothing happens. Set it to inject faults. */
  beforeCall: (call: string, args: readonly unknown[]) => unknown;
}

export function watchedStore(base: AgentStore): WatchedStore {
  const { checkpoints, approvals, ...rest } = base;
  const watched: WatchedStore = { ...rest, saves: [], calls: [], beforeCall: () => undefined };
  const around = <Part extends object>(part: Part, prefix: string): Part =>
    new Proxy({} as Part, {
      has: (_, key) => key in part,
      get(_, key) {
        const member: unknown = Reflect.get(part, key, part);
        if (typeof member !== 'function') return member;
        return async (...args: unknown[]): Promise<unknown> => {
          const call = `${prefix}${String(key)}`;
          watched.calls.push(call);
          await watched.beforeCall(call, args);
          const result: unknown = await Reflect.apply(member, part, args);
          if (call === 'save' || (call === 'saveIfLeased' && result === true))
            watched.saves.push(args[1] as Checkpoint);
          return result;
        };
      },
    });
  return Object.assign(watched, {
    ...(checkpoints && { checkpoints: around(checkpoints, '') }),
    ...(approvals && { approvals: around(approvals, 'approvals.') }),
  });
}
