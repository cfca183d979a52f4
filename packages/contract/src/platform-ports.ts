/** The ports of the platform that every runtime has. The only file of this package that reads a clock or makes an id. */
import type { Clock, Ids, Ports, Processes } from './ports.ts';

export const platformClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer(callback, delayMs, { keepAlive = true } = {}) {
    const timer: unknown = setTimeout(callback, delayMs);
    if (!keepAlive && hasUnref(timer)) timer.unref();
    return () => clearTimeout(timer as ReturnType<typeof setTimeout>);
  },
};

export const platformIds: Ids = {
  random: () => crypto.randomUUID(),
};

/** One for each loaded copy of this module: two copies are two holders. */
const instanceId = crypto.randomUUID();

/** Knows this instance and nothing else, so no holder is ever taken for gone. Stores on a disk know more. */
export const platformProcesses: Processes = {
  own: () => ({ instanceId }),
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
