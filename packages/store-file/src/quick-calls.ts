/**
 * The calls of a save, made on the thread itself where that is sooner than a trip to the thread pool and back. Such a trip takes 0.1 ms and
 * more, as often as not longer than the sync of a fast disk, and a save that appends a line would make four.
 */
import fs from 'node:fs';
import type { Clock } from '@lousho/contract';
import { fileStatOf, type FileStat, type FileSystem } from './file-system.ts';

/** What is done on the thread. A file system in tests has none of these: each of its calls can wait. */
export interface ThreadCalls {
  stat(file: number | string): FileStat;
  write(fd: number, bytes: Uint8Array, position: number): number;
  syncData(fd: number): void;
}

export const nodeThreadCalls: ThreadCalls = {
  stat: (file) => fileStatOf(typeof file === 'number' ? fs.fstatSync(file) : fs.statSync(file)),
  write: (fd, bytes, position) => fs.writeSync(fd, bytes, 0, bytes.byteLength, position),
  syncData: (fd) => fs.fdatasyncSync(fd),
};

export interface QuickCallsDeps {
  readonly fs: FileSystem;
  readonly thread: ThreadCalls;
  readonly clock: Clock;
  /** A server that does not answer would hold the thread for minutes. */
  readonly isOnLocalDisk: () => boolean;
  /** Several saves at one moment share the disk best from the thread pool: a journal takes the syncs of many files together. */
  readonly isAlone: () => boolean;
}

/** What takes longer gains little from the thread, and others wait for it. One such call is an accident: a quick disk has one in a hundred. */
const QUICK_MS = 2;
/** So slow calls hold the thread for a twentieth of the time at most. */
const PAUSE_FACTOR = 20;
/** One save behind another never waits for anything. So now and then one goes to the pool, and heartbeats and requests get their turn. */
const LONGEST_HELD_MS = 20;
/** Copying more than that takes as long as a trip. */
const SMALL_WRITE_BYTES = 64 * 1024;

/** The file system with these calls on the thread, as long as the disk is quick. */
export function withQuickCalls({ fs, thread, clock, isOnLocalDisk, isAlone }: QuickCallsDeps): FileSystem {
  // What is known of a file is in memory also where a sync takes long, and what is written goes there first.
  const [looks, writes, syncs] = [new Pace(clock), new Pace(clock), new Pace(clock)];
  const mayHold = (pace: Pace): boolean => isOnLocalDisk() && isAlone() && pace.mayHoldThread();
  return {
    ...fs,
    stat: (file) =>
      isOnLocalDisk() && looks.mayHoldThread() ? looks.onThread(() => thread.stat(file)) : fs.stat(file),
    write: (fd, bytes, position) =>
      bytes.byteLength <= SMALL_WRITE_BYTES && mayHold(writes)
        ? writes.onThread(() => thread.write(fd, bytes, position))
        : fs.write(fd, bytes, position),
    syncData: (fd) => (mayHold(syncs) ? syncs.onThread(() => thread.syncData(fd)) : fs.syncData(fd)),
  };
}

/** For how long calls of one kind have held the thread, and whether another one may. */
class Pace {
  #inPoolUntilMs = -Infinity;
  #heldMs = 0;
  #wasSlow = false;

  constructor(readonly clock: Clock) {}

  mayHoldThread(): boolean {
    if (this.clock.monotonicMs() < this.#inPoolUntilMs) return false;
    if (this.#heldMs < LONGEST_HELD_MS) return true;
    this.#heldMs = 0;
    return false;
  }

  onThread<Value>(call: () => Value): Value {
    const startedAtMs = this.clock.monotonicMs();
    try {
      return call();
    } finally {
      const endedAtMs = this.clock.monotonicMs();
      const tookMs = endedAtMs - startedAtMs;
      this.#heldMs += tookMs;
      const isSlow = tookMs > QUICK_MS;
      if ((isSlow && this.#wasSlow) || tookMs > LONGEST_HELD_MS)
        this.#inPoolUntilMs = endedAtMs + PAUSE_FACTOR * tookMs;
      this.#wasSlow = isSlow;
    }
  }
}
