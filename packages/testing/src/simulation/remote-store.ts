/** The one store of a world as one of its processes has it: over a network that is slow, fails, and does not know of deaths. */
import { frozenCopy, SDKError, type AgentStore } from '@lousho/contract';
import { interceptedStore } from '../crash/intercepted-store.ts';
import type { TrueTime } from './true-time.ts';
import type { VirtualProcess } from './virtual-process.ts';

/** What becomes of one call. */
export interface CallFate {
  /** From the process to the store, and from the store to the process. */
  readonly thereMs: number;
  readonly backMs: number;
  /** `refused`: it fails before it takes effect. `unacknowledged`: it takes effect, and the process hears that it failed. */
  readonly end: 'answered' | 'refused' | 'unacknowledged';
  /** What becomes of it when the process dies before it is there. */
  readonly dies: 'with its process' | 'never';
}
export interface StoreCallSeen {
  readonly process: VirtualProcess;
  readonly method: string;
  readonly args: readonly unknown[];
}
export interface RemoteStoreDeps {
  readonly time: TrueTime;
  readonly process: VirtualProcess;
  readonly fateOf: (method: string) => CallFate;
  readonly begun: (call: StoreCallSeen) => void;
  /** It took effect, in the very moment. */
  readonly landed: (call: StoreCallSeen, result: unknown) => void;
  /** The process heard that it took effect. */
  readonly acknowledged: (call: StoreCallSeen) => void;
}

export function remoteStore(store: AgentStore, deps: RemoteStoreDeps): AgentStore {
  const { time, process, fateOf, begun, landed, acknowledged } = deps;
  return interceptedStore(store, (method, given, perform) => {
    if (!process.isAlive) return never();
    const fate = fateOf(method);
    // What is on its way is not changed any more.
    const call: StoreCallSeen = { process, method, args: given.map((arg) => frozenCopy(arg)) };
    begun(call);
    return new Promise((resolve, reject) => {
      const answer = (give: () => void): void => void time.in(fate.backMs, () => process.deliver(give));
      time.in(fate.thereMs, () => {
        if (!process.isAlive && fate.dies === 'with its process') return;
        if (fate.end === 'refused') return answer(() => reject(failure(method)));
        void settled(perform).then((outcome) => {
          if (!outcome.ok) return answer(() => reject(outcome.error));
          landed(call, outcome.result);
          answer(() => {
            if (fate.end === 'unacknowledged') return reject(failure(method));
            acknowledged(call);
            resolve(outcome.result);
          });
        });
      });
    });
  });
}

const reading = /load|list|history/;

function failure(method: string): SDKError {
  const code = reading.test(method) ? 'LOUSHO_STORE_READ_FAILED' : 'LOUSHO_STORE_WRITE_FAILED';
  return new SDKError(code, { operation: method });
}

type Settled =
  { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: Error };

async function settled(perform: () => unknown): Promise<Settled> {
  try {
    return { ok: true, result: await perform() };
  } catch (error) {
    return { ok: false, error: error as Error };
  }
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
