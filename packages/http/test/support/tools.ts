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
