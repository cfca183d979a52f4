/** What the agents of these tests can do. */
import { defineTool } from '@lousho/core';
import { vi } from 'vitest';
import { z } from 'zod';
import { deferred } from './served.ts';

/** Waits for a person. */
export function refundTool() {
  const ran = vi.fn(async ({ cents }: { cents: number }) => `refunded ${cents}`);
  const tool = defineTool({
    name: 'refund',
    description: 'Pays back.',
    input: z.object({ cents: z.number() }),
    needsApproval: true,
    execute: ran,
  });
  return { ran, tool };
}

export function lookTool(execute = async (): Promise<string> => 'sunny') {
  return defineTool({ name: 'look', description: 'Looks.', input: z.object({}), execute });
}

/** Takes until its run is stopped, once it has begun. */
export function endlessTool(name: string) {
  const begun = deferred();
  const tool = defineTool({
    name,
    description: 'Takes long.',
    input: { type: 'object' },
    execute: (_args, { signal }) => {
      begun.resolve();
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    },
  });
  return { tool, begun: begun.promise };
}

/** Takes until it is told to go on, once it has begun. */
export function slowLookTool() {
  const begun = deferred();
  const told = deferred();
  const tool = lookTool(async () => {
    begun.resolve();
    await told.promise;
    return 'sunny';
  });
  return { tool, begun: begun.promise, goOn: told.resolve };
}
