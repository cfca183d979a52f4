/** A file system that does something right before its n-th call: somebody exchanges a folder, or the process dies. */
import type { FileHandle } from 'node:fs/promises';
import { nodeFiles, type FileCalls } from '../../src/file-calls.ts';

/** Counts calls from 0. `callCount` tells a sweep when it is through. */
export function beforeCall(
  n: number,
  act: () => void,
): { readonly files: FileCalls; readonly callCount: () => number } {
  let count = 0;
  return {
    files: wrap(() => {
      if (count === n) act();
      count += 1;
    }),
    callCount: () => count,
  };
}

class Died extends Error {}

/** From its n-th call on nothing happens any more. What was being written is there by half. */
export function diesAt(n: number): { readonly files: FileCalls; readonly hasDied: () => boolean } {
  let count = 0;
  const step = (): void => {
    count += 1;
    if (count > n) throw new Died('the process died');
  };
  return { files: wrap(step), hasDied: () => count > n };
}

function wrap(step: () => void): FileCalls {
  const calls = Object.entries(nodeFiles).map(
    ([name, call]: [string, (...args: never[]) => Promise<unknown>]) => [
      name,
      async (...args: never[]) => {
        step();
        const result = await call(...args);
        return name === 'open' ? wrapHandle(result as FileHandle, step) : result;
      },
    ],
  );
  return Object.fromEntries(calls) as FileCalls;
}

function wrapHandle(handle: FileHandle, step: () => void): FileHandle {
  return new Proxy(handle, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name !== 'writeFile') return (value as (...args: unknown[]) => unknown).bind(target);
      return async (bytes: Uint8Array) => {
        try {
          step();
        } catch (error) {
          await target.writeFile(bytes.subarray(0, bytes.length / 2));
          throw error;
        }
        await target.writeFile(bytes);
      };
    },
  });
}
