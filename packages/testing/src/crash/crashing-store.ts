/** A store as one process sees it that dies at a planned call. The data behind it lives on. */
import type { AgentStore } from '@lousho/contract';
import type { CrashPoint } from './crash-scenario.ts';
import { interceptedStore } from './intercepted-store.ts';

/** A call that the store has carried out, whether the process lived to see it or not. */
export interface StoreCall {
  /** For example `saveIfLeased` or `approvals.save`. */
  readonly method: string;
  readonly args: readonly unknown[];
  readonly result: unknown;
}
export interface CrashPlan {
  /** Absent: dies only when it is killed. */
  readonly point?: CrashPoint | undefined;
  readonly onPerformed?: ((call: StoreCall) => void) | undefined;
}
export interface CrashingStore {
  /** Has the methods of the real one. Closing it closes this process's view, not the data. */
  readonly store: AgentStore;
  /** Names of the calls and effects so far, each with its number, for example `saveIfLeased#3` or `effect charge#1`. */
  readonly calls: readonly string[];
  readonly isDead: boolean;
  /** Calls that the store is working on: one that a death cuts off may come about all the same. */
  readonly underWay: ReadonlySet<BegunCall>;
  /** What its process does to the world outside, which may be where it dies: before it by throwing. What a dead one does never comes about. */
  effect(name: string, perform: () => void): void;
  kill(): void;
}
/** A call that the store was given. */
export type BegunCall = Pick<StoreCall, 'method' | 'args'>;

/** Dies before or after the planned call of any method, reads too: that call and all later ones never settle. */
export function crashingStore(store: AgentStore, plan: CrashPlan = {}): CrashingStore {
  const calls: string[] = [];
  const countOf = new Map<string, number>();
  const underWay = new Set<BegunCall>();
  let isDead = false;

  function numbered(method: string): string {
    const count = (countOf.get(method) ?? 0) + 1;
    countOf.set(method, count);
    const call = `${method}#${count}`;
    calls.push(call);
    return call;
  }
  function diesAt(call: string, when: CrashPoint['when']): boolean {
    if (plan.point?.call === call && plan.point.when === when) isDead = true;
    return isDead;
  }
  async function intercept(
    method: string,
    args: readonly unknown[],
    perform: () => unknown,
  ): Promise<unknown> {
    if (isDead) return never();
    const call = numbered(method);
    if (diesAt(call, 'before')) return never();
    const begun: BegunCall = { method, args };
    underWay.add(begun);
    const outcome = await settled(perform);
    underWay.delete(begun);
    if (outcome.ok) plan.onPerformed?.({ method, args, result: outcome.result });
    if (diesAt(call, 'after')) return never();
    if (!outcome.ok) throw outcome.error;
    return outcome.result;
  }

  function effect(name: string, perform: () => void): void {
    if (isDead) return;
    const call = numbered(`effect ${name}`);
    // What the tool would do next, it does not live to do.
    if (diesAt(call, 'before')) throw new Error(`The process died before ${call}.`);
    perform();
    diesAt(call, 'after');
  }

  return {
    store: interceptedStore(store, intercept),
    effect,
    calls,
    underWay,
    get isDead() {
      return isDead;
    },
    kill() {
      isDead = true;
    },
  };
}

type Settled =
  { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: unknown };

/** Begins at once, as the real call would. */
async function settled(perform: () => unknown): Promise<Settled> {
  try {
    return { ok: true, result: await perform() };
  } catch (error) {
    return { ok: false, error };
  }
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
