/** The tools in the hands of an agent: who must agree, and what a crash in the middle means. */
import { createAgent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { workspaceTools } from '../src/index.ts';
import { TempWorkspace } from './support/temp-workspace.ts';

it.each([
  ['write_file', { path: 'a.txt', content: 'two' }],
  ['edit_file', { path: 'a.txt', old_string: 'one', new_string: 'two' }],
  ['shell', { command: 'printf two > a.txt' }],
])('%s waits for a person, then runs', async (name, args) => {
  const world = new TempWorkspace({ 'a.txt': 'one' });
  const provider = mockModel([{ toolCalls: [{ name, args }] }, 'Done.']);
  const agent = createAgent({ provider, tools: workspaceTools({ root: world.root }), store: memoryStore() });
  const paused = await agent.send('Change it.', { sessionId: 'files' });
  expect(paused.finishReason).toBe('awaiting-approval');
  expect(world.read('a.txt')).toBe('one');
  const [approval] = await agent.approvals.list();
  await agent.approvals.resolve({ id: approval?.id ?? '', approved: true });
  expect(world.read('a.txt')).toBe('two');
});

it('tells the model the code, the path and the next step', async () => {
  const world = new TempWorkspace();
  const provider = mockModel([{ toolCalls: [{ name: 'read_file', args: { path: '../x' } }] }, 'Done.']);
  const agent = createAgent({ provider, tools: workspaceTools({ root: world.root }) });
  const { toolCalls } = await agent.send('Read it.');
  expect(toolCalls[0]).toMatchObject({ isError: true, kind: 'execution' });
  expect(JSON.stringify(toolCalls[0]?.result)).toContain(
    String.raw`OUTSIDE_WORKSPACE: \"../x\" is outside of the workspace. Give a path relative`,
  );
});
