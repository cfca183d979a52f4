/** The code blocks that Lousho began with run as they stand, and do what their pages say. See seed-snippets/README.md. */
import { existsSync } from 'node:fs';
import type { AgentStore, Checkpoint } from '@lousho/contract';
import { fileStore } from '@lousho/store-file';
import { LocalStorageCheckpointStore } from '@lousho/store-memory';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel } from '@lousho/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAgent } from '../src/index.ts';
import { lines, rejection } from './support/read.ts';
import { runSnippet } from './support/snippets.ts';
import { emailTool, failingOnceTool } from './support/tools.ts';
import { temporaryFolder } from './support/world.ts';

const askForEmail = { toolCalls: [{ name: 'email', args: { to: 'team@example.com' } }] };

async function stored(store: AgentStore, id: string): Promise<Checkpoint | null | undefined> {
  return store.checkpoints?.load(id);
}

describe('the snippets over SQLite', () => {
  const home = process.cwd();
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  beforeAll(async () => {
    folder = await temporaryFolder();
    process.chdir(folder.path);
  });
  afterAll(async () => {
    process.chdir(home);
    await folder.remove();
  });

  it('en 1: two messages are one conversation, and afterwards there is nothing to resume', async () => {
    const provider = mockModel(['Booked for 2.', 'Now 3.']);
    expect(existsSync('.lousho')).toBe(false);
    const run = await runSnippet('en-01-conversation', { globals: { provider } });
    expect(run.error).toBeUndefined();
    expect(provider.calls.map(({ messages }) => lines(messages))).toEqual([
      ['user Book a table for 2 tonight'],
      ['user Book a table for 2 tonight', 'assistant Booked for 2.', 'user Make it 3 people'],
    ]);
    expect(await run.agents[0]?.resume('chat-42')).toBeNull();
    await run.close();
    await using store = new SqliteStore('./.lousho/jobs.db');
    expect(await stored(store, 'chat-42')).toMatchObject({ status: 'finished', finishReason: 'stop' });
  });

  it('ar 2: an interrupted run is finished, then its conversation goes on, counted from zero', async () => {
    const work = failingOnceTool('work');
    {
      await using store = new SqliteStore('./.lousho/jobs.db');
      const provider = mockModel([{ toolCalls: [{ name: 'work' }] }]);
      const agent = createAgent({ provider, tools: [work.tool], store });
      await rejection(agent.send('Read the reports', { sessionId: 'job-1' }));
    }
    const provider = mockModel(['Read.', 'In short: fine.']);
    const run = await runSnippet('ar-02-resume-and-send', { globals: { provider }, tools: [work.tool] });
    expect(run.error).toBeUndefined();
    expect(work.runs).toHaveLength(2);
    expect(lines(provider.calls[1]?.messages ?? [])).toEqual([
      'user Read the reports',
      'assistant work#call_1',
      'tool call_1 "work done"',
      'assistant Read.',
      'user Now write a summary',
    ]);
    await run.close();
    await using store = new SqliteStore('./.lousho/jobs.db');
    expect(await stored(store, 'job-1')).toMatchObject({
      status: 'finished',
      stepIndex: 1,
      usage: { modelCalls: 1 },
    });
  });
});

describe('en 4: recovery by hand at startup', () => {
  it('finishes what was interrupted, and says what waits for a person', async () => {
    const folder = await temporaryFolder();
    const home = process.cwd();
    process.chdir(folder.path);
    try {
      const work = failingOnceTool('work');
      const email = emailTool();
      const tools = [work.tool, email.tool];
      const before = fileStore('./.lousho');
      const script = [{ toolCalls: [{ name: 'work' }] }, askForEmail, 'Nothing to do.'];
      const agent = createAgent({ provider: mockModel(script), tools, store: before });
      await rejection(agent.send('go', { sessionId: 'job-a' }));
      const { approvalId } = await agent.send('Email the team', { sessionId: 'job-b' });
      await agent.send('hi', { sessionId: 'job-c' });
      await before.close();
      const provider = mockModel(['Done.']);
      const run = await runSnippet('en-04-recovery-by-hand', { globals: { provider }, tools });
      expect(run.error).toBeUndefined();
      expect(run.printed).toEqual([[`session job-b waits on approval ${approvalId}`]]);
      expect([provider.calls.length, work.runs.length, email.runs.length]).toEqual([1, 2, 0]);
      expect(await run.agents[0]?.pending()).toMatchObject([{ sessionId: 'job-b' }]);
      await run.close();
    } finally {
      process.chdir(home);
      await folder.remove();
    }
  });
});

describe.each([
  ['en 12', 'en-12-conversation-over-the-executor'],
  ['ar 1', 'ar-01-conversation-over-the-executor'],
])('%s: the executor over the storage of a browser', (_block, name) => {
  it('keeps two messages as one conversation, which is there as text', async () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
      removeItem: (key: string) => void kept.delete(key),
    };
    const provider = mockModel(['Booked for 2.', 'Now 3.']);
    const run = await runSnippet(name, { globals: { provider, agent: {}, storage } });
    expect(run.error).toBeUndefined();
    expect(provider.calls.map(({ messages }) => lines(messages))).toEqual([
      ['user Book a table for 2 tonight'],
      ['user Book a table for 2 tonight', 'assistant Booked for 2.', 'user Make it 3 people'],
    ]);
    const reopened = new LocalStorageCheckpointStore(storage);
    expect(await reopened.load('chat-42')).toMatchObject({ status: 'finished', finishReason: 'stop' });
    expect([...kept.values()].join('')).toContain('Make it 3 people');
  });
});

describe('the list of snippets', () => {
  it('names all 24 blocks, and every file', async () => {
    const { readFile, readdir } = await import('node:fs/promises');
    const folder = new URL('./seed-snippets/', import.meta.url);
    const readme = await readFile(new URL('README.md', folder), 'utf8');
    const rows = readme.match(/^\| (en|ar) \d+ .*\|$/gm) ?? [];
    expect(rows).toHaveLength(24);
    const files = (await readdir(folder)).filter((file) => /^(en|ar)-.*\.ts$/.test(file));
    const named = rows.flatMap((row) => row.match(/`((?:en|ar)-[^`]+\.ts)`/)?.[1] ?? []);
    expect(named.sort()).toEqual(files.sort());
    // What has no file says what it waits for.
    for (const row of rows)
      expect(
        row
          .split('|')
          .map((cell) => cell.trim())
          .slice(3, 5)
          .filter(Boolean),
      ).toHaveLength(1);
  });
});
