/** A file system whose n-th call waits until it is let go, as a process that is stopped in the middle of its work. */
import { nodeFileSystem, type FileSystem } from '../../src/file-system.ts';

export interface StallingFiles extends FileSystem {
  /** From now on, the n-th call waits, from 1. Resolves when it does. */
  stallAt(call: number): Promise<'stalled'>;
  letGo(): void;
}

const real = nodeFileSystem as unknown as {
  readonly [name: string]: (...args: readonly unknown[]) => Promise<unknown>;
};

export function stallingFiles(): StallingFiles {
  let left = Infinity;
  let letGo: () => void = () => undefined;
  let report: (value: 'stalled') => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const call = async (name: string, args: readonly unknown[]): Promise<unknown> => {
    left -= 1;
    if (left === 0) {
      report('stalled');
      await released;
    }
    // No test can see that something is only in memory, and syncs are slow.
    return name.startsWith('sync') || real[name]?.(...args);
  };
  const wrapped = Object.fromEntries(
    Object.keys(real).map((name) => [name, (...args: unknown[]) => call(name, args)]),
  ) as unknown as FileSystem;
  return {
    ...wrapped,
    stallAt(count) {
      left = count;
      return new Promise((resolve) => {
        report = resolve;
      });
    },
    letGo: () => letGo(),
  };
}
