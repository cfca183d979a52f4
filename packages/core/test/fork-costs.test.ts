/** A fork writes what is its own: what it begins with is in the store already. */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { FullAgentStore } from '@lousho/contract';
import { fileStore } from '@lousho/store-file';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { createAgent, type ForkOptions } from '../src/index.ts';
import { spyTool } from './support/tools.ts';
import { temporaryFolder } from './support/world.ts';

const STEPS = 60;
const RESULT_BYTES = 8_000;

const stores: { readonly [kind: string]: (folder: string) => FullAgentStore } = {
  sqlite: (folder) => new SqliteStore(path.join(folder, 'agent.db'), { durability: 'process' }),
  file: (folder) => fileStore(folder, { durability: 'process' }),
};

/** Bytes of a folder. A file with two names is there once. */
async function bytesIn(folder: string): Promise<number> {
  const files = new Map<number, number>();
  for (const name of await readdir(folder, { recursive: true })) {
    const { ino, size, blocks } = await stat(path.join(folder, name));
    files.set(ino, Math.min(size, blocks * 512));
  }
  return [...files.values()].reduce((sum, size) => sum + size, 0);
}

const last = `call_${STEPS}`;
const plain: ForkOptions = { fromStep: STEPS };
const withInput: ForkOptions = {
  fromStep: STEPS - 2,
  patch: { appendInput: 'And now?', businessState: { a: 1 } },
};
const withResult: ForkOptions = {
  fromStep: STEPS,
  patch: { toolResult: { toolCallId: last, result: 'other' } },
};

it.each<[string, string, ForkOptions]>([
  ['sqlite', 'plain', plain],
  ['sqlite', 'with more input', withInput],
  ['sqlite', 'with another result', withResult],
  ['file', 'plain', plain],
  ['file', 'with more input', withInput],
])('a fork of a long run costs little (%s, %s)', async (kind, _how, options) => {
  const folder = await temporaryFolder();
  const open = stores[kind] as (typeof stores)[string];
  try {
    const work = spyTool('work', () => 'x'.repeat(RESULT_BYTES));
    const script = Array.from({ length: STEPS }, (_, index) => ({
      toolCalls: [{ name: 'work', id: `call_${index + 1}` }],
    }));
    const first = open(folder.path);
    const provider = mockModel([...script, 'Done.']);
    await createAgent({ provider, tools: [work.tool], store: first, maxSteps: 100 }).send('go', {
      sessionId: 'long',
    });
    await first.close();
    const before = await bytesIn(folder.path);
    expect(before).toBeGreaterThan(STEPS * RESULT_BYTES);

    const second = open(folder.path);
    const { checkpoint } = await createAgent({ provider: mockModel([]), store: second }).fork(
      'long',
      options,
    );
    await second.close();
    expect((await bytesIn(folder.path)) - before).toBeLessThan((STEPS * RESULT_BYTES) / 10);

    await using third = open(folder.path);
    expect(await third.checkpoints.load('long.fork-1')).toEqual(checkpoint);
  } finally {
    await folder.remove();
  }
});
