/** The ports of the platform that every runtime has. The only file of this package that reads a clock or makes an id. */
import type { Clock, Ids, Ports, Processes } from './ports.ts';

/** Node, browsers and workers all fire at once when a delay does not fit into 31 bits. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export const platformClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer(callback, delayMs, { keepAlive = true } = {}) {
    let timer: unknown;
    let leftMs = delayMs;
    const wait = (): void => {
      const partMs = Math.min(leftMs, MAX_TIMEOUT_MS);
      leftMs -= partMs;
      timer = setTimeout(leftMs > 0 ? wait : callback, partMs);
      if (!keepAlive && hasUnref(timer)) timer.unref();
    };
    wait();
    return () => clearTimeout(timer as ReturnType<typeof setTimeout>);
  },
};

export const platformIds: Ids = {
  random: () => crypto.randomUUID(),
};

/** One for each loaded copy of this module: two copies are two holders. Made when first asked: Workers have no chance before a request. */
let instanceId: string | undefined;

/** Knows this instance and nothing else, so no holder is ever taken for gone. Stores on a disk know more. */
export const platformProcesses: Processes = {
  own: () => ({ instanceId: (instanceId ??= crypto.randomUUID()) }),
  isGone: () => false,
};

/** The given ports, and the platform's for the rest. */
export function resolvePorts(ports: Partial<Ports> = {}): Ports {
  return {
    clock: ports.clock ?? platformClock,
    ids: ports.ids ?? platformIds,
    processes: ports.processes ?? platformProcesses,
  };
}

function hasUnref(timer: unknown): timer is { unref(): void } {
  return typeof timer === 'object' && timer !== null && 'unref' in timer;
}
