/** Subjects of the suite's own tests: the correct store, with a flaw planted or without, and the same behind a slow network. */
import type { ApprovalStore, FullCheckpointStore, SessionStore, AgentStore } from '@lousho/contract';
import type { StoreSubject } from '../../src/conformance.ts';
import { damage, HISTORY_LIMIT, Medium, plainClaims, plainStore, type Handle } from './plain-store.ts';

/** Methods that stand in for those of the correct store. `undefined` takes one away. */
export interface Overrides {
  readonly checkpoints?: {
    readonly [Method in keyof FullCheckpointStore]?: FullCheckpointStore[Method] | undefined;
  };
  readonly approvals?: Partial<ApprovalStore>;
  readonly sessions?: Partial<SessionStore>;
  readonly store?: Partial<Record<keyof AgentStore, unknown>>;
  /** The flaw is in what every method begins with. */
  readonly isUnguarded?: boolean;
}
/** @param handles how many were opened before this one */
export type Plant = (right: Handle, medium: Medium, handles: number) => Overrides;

export function plainSubject(name: string, plant: Plant = () => ({})): StoreSubject {
  return {
    name,
    claims: plainClaims,
    historyLimit: HISTORY_LIMIT,
    async createStorage(clock) {
      const medium = new Medium(clock);
      let handles = 0;
      return {
        open: async () => {
          const right = plainStore(medium);
          return withOverrides(right, plant(right, medium, handles++));
        },
        destroy: async () => undefined,
        corrupt: async (id) => damage(medium.latest, id),
        corruptApproval: async (id) => damage(medium.approvals, id),
        corruptSession: async (id) => damage(medium.sessions, id),
      };
    },
  };
}

export function withOverrides(right: Handle, overrides: Overrides): AgentStore {
  const { enter, ...whole } = right;
  const guard = overrides.isUnguarded === true ? () => undefined : enter;
  const parts = {
    ...whole,
    ...guarded('store', overrides.store, guard),
    checkpoints: { ...right.checkpoints, ...guarded('checkpoints', overrides.checkpoints, guard) },
    approvals: { ...right.approvals, ...guarded('approvals', overrides.approvals, guard) },
    sessions: { ...right.sessions, ...guarded('sessions', overrides.sessions, guard) },
  };
  return parts;
}

/** A flaw shows where it is planted only: its methods still refuse malformed ids of checkpoints, and all calls after the end. */
function guarded(part: string, overrides: object = {}, guard: Handle['enter']): object {
  const copy: Record<string | symbol, unknown> = {};
  for (const key of Reflect.ownKeys(overrides)) {
    const member: unknown = Reflect.get(overrides, key);
    const isMethod = typeof member === 'function' && typeof key === 'string' && key !== 'close';
    const takesId = part === 'checkpoints' && !['list', 'listHeaders', 'prune'].includes(String(key));
    copy[key] = !isMethod
      ? member
      : async (...args: unknown[]): Promise<unknown> => {
          guard(`${part}.${key}`, takesId ? String(args[0]) : undefined);
          return Reflect.apply(member, overrides, args) as unknown;
        };
  }
  return copy;
}
