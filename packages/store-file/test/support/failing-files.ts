/** A file system whose n-th change fails, or is the last one that its process made. */
import { nodeFileSystem, type FileSystem } from '../../src/file-system.ts';

export interface FailurePlan {
  /** Counts the calls that change something, from 1. */
  readonly at: number;
  /** `dies`: neither this call nor any later one happens. `fails`: this one does not, or half of it where it is a write. */
  readonly how: 'dies' | 'fails';
}

export interface FailingFiles extends FileSystem {
  /** Begins to count. */
  arm(plan: FailurePlan): void;
  disarm(): void;
  /** Whether the call came. */
  readonly hasFailed: boolean;
  /** Resolves when the process "died". */
  readonly died: Promise<'died'>;
}

const CHANGES = new Set<keyof FileSystem>([
  'write',
  'truncate',
  'syncData',
  'sync',
  'makeFolders',
  'makeFolder',
  'link',
  'rename',
  'unlink',
  'removeFolder',
]);

const real = nodeFileSystem as unknown as {
  readonly [name: string]: (...args: readonly unknown[]) => Promise<unknown>;
};

export function failingFiles(): FailingFiles {
  let plan: FailurePlan | undefined;
  let count = 0;
  let hasFailed = false;
  let isDead = false;
  let reportDeath: (value: 'died') => void = () => undefined;
  const died = new Promise<'died'>((resolve) => {
    reportDeath = resolve;
  });
  const never = (): Promise<never> => new Promise(() => undefined);

  function die(): Promise<never> {
    isDead = true;
    reportDeath('died');
    return never();
  }
  async function call(name: keyof FileSystem, args: readonly unknown[]): Promise<unknown> {
    if (isDead) return never();
    // No test can see that something is only in memory, and syncs are slow.
    const perform = async (): Promise<unknown> => name.startsWith('sync') || real[name]?.(...args);
    const isChange = CHANGES.has(name) || (name === 'open' && args[1] === 'new');
    if (plan === undefined || !isChange) return perform();
    count += 1;
    if (count !== plan.at) return perform();
    hasFailed = true;
    if (plan.how === 'dies') return die();
    if (name !== 'write') throw failure('EIO', name);
    const [fd, bytes, position] = args as Parameters<FileSystem['write']>;
    await nodeFileSystem.write(fd, bytes.subarray(0, bytes.byteLength / 2), position);
    throw failure('ENOSPC', name);
  }

  const names = Object.keys(nodeFileSystem) as (keyof FileSystem)[];
  const wrapped = Object.fromEntries(
    names.map((name) => [name, (...args: unknown[]) => call(name, args)]),
  ) as unknown as FileSystem;
  return {
    ...wrapped,
    pause: async () => undefined,
    arm(next) {
      plan = next;
    },
    disarm() {
      plan = undefined;
    },
    get hasFailed() {
      return hasFailed;
    },
    died,
  };
}

function failure(code: string, name: string): Error {
  return Object.assign(new Error(`${code} of ${name}`), { code, syscall: name });
}
