/** The reference servers, in processes of their own, through the clients of both lines of the SDK. */
import fs from 'node:fs';
import path from 'node:path';
import { createAgent, type JsonObject } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { mcpTools, type McpTools, type McpToolsOptions } from '../src/index.ts';
import {
  connectStdio,
  everything,
  filesystem,
  ledgerLines,
  ledgerServer,
  temporaryFolder,
  until,
  type Connected,
  type Line,
} from './support/servers.ts';

const opened: McpTools[] = [];
afterEach(async () => {
  for (const tools of opened.splice(0)) await tools.close();
});

/** The tools of one server, and every connection that was made to it. */
async function toolsOf(line: Line, args: readonly string[], options: McpToolsOptions = {}) {
  const connections: Connected[] = [];
  const connect = async () => {
    const connected = await connectStdio(line, args);
    connections.push(connected);
    return connected.client;
  };
  const tools = await mcpTools({ connect, ...options });
  opened.push(tools);
  return { tools, connections };
}

/** What one call gives in the hands of an agent. */
async function callOnce(tools: McpTools, name: string, args: JsonObject) {
  const provider = mockModel([{ toolCalls: [{ name, args }] }, 'Done.']);
  const { toolCalls } = await createAgent({ provider, tools }).send('Go.');
  return toolCalls[0];
}

/** The server is dead, and its client has seen that. */
async function killed(connected: Connected | undefined): Promise<void> {
  if (connected === undefined) throw new Error('There is no connection.');
  const { client, pid } = connected;
  const closed = new Promise<void>((resolve) => {
    const { onclose } = client;
    client.onclose = () => {
      onclose?.();
      resolve();
    };
  });
  process.kill(pid, 'SIGKILL');
  await closed;
}

describe.each<Line>(['v1', 'v2'])('a client of line %s', (line) => {
  it('lists the tools of the reference server, and gives what they answer', async () => {
    const { tools } = await toolsOf(line, everything, { prefix: 'ev', approve: 'never' });
    const names = tools.map(({ name }) => name);
    expect(names).toContain('ev_echo');
    expect(tools.leftOut.map(({ name }) => name)).toEqual(['simulate-research-query']);
    const echo = await callOnce(tools, 'ev_echo', { message: 'hi' });
    expect(echo?.result).toBe('Echo: hi');
    const weather = await callOnce(tools, 'ev_get-structured-content', { location: 'New York' });
    expect(weather?.result).toMatchObject({ temperature: expect.any(Number) });
    const image = await callOnce(tools, 'ev_get-tiny-image', {});
    expect(image?.result).toMatch(/\[image image\/png, \d+ bytes, left out\]/);
  });

  it('tells the model what the server says of wrong arguments', async () => {
    const { tools } = await toolsOf(line, everything, { approve: 'never' });
    const call = await callOnce(tools, 'echo', {});
    expect(call).toMatchObject({ isError: true, kind: 'execution' });
    expect(JSON.stringify(call?.result)).toMatch(/MCP_TOOL_FAILED: .*[Ii]nvalid arguments/);
  });

  it('says of a call whose server was killed that it may have happened, and connects anew for the next', async () => {
    const ledger = path.join(temporaryFolder(), 'ledger');
    const { tools, connections } = await toolsOf(line, ledgerServer(ledger), { approve: 'never' });
    const cut = callOnce(tools, 'pay', { amount: 7, hang: true });
    await until(() => ledgerLines(ledger).length === 1);
    process.kill(connections[0]?.pid ?? 0, 'SIGKILL');
    const call = await cut;
    expect(call).toMatchObject({ isError: true, kind: 'execution' });
    expect(JSON.stringify(call?.result)).toMatch(/MCP_OUTCOME_UNKNOWN: .*may or may not have taken effect/);
    expect(ledgerLines(ledger)).toHaveLength(1);

    const next = await callOnce(tools, 'pay', { amount: 8 });
    expect(next?.result).toBe('pay done');
    expect(connections).toHaveLength(2);
    expect(ledgerLines(ledger).map(({ args }) => args)).toEqual([{ amount: 7, hang: true }, { amount: 8 }]);
  });

  it('gives the server a key by which it can tell a call from every other', async () => {
    const ledger = path.join(temporaryFolder(), 'ledger');
    const { tools } = await toolsOf(line, ledgerServer(ledger), { approve: 'never' });
    await callOnce(tools, 'pay', { amount: 1 });
    await callOnce(tools, 'pay', { amount: 1 });
    const keys = ledgerLines(ledger).map(({ key }) => key);
    expect(keys.every((key) => typeof key === 'string')).toBe(true);
    expect(new Set(keys).size).toBe(2);
  });

  it('ends a running call when the run is aborted', async () => {
    const ledger = path.join(temporaryFolder(), 'ledger');
    const { tools } = await toolsOf(line, ledgerServer(ledger), { approve: 'never' });
    const provider = mockModel([{ toolCalls: [{ name: 'pay', args: { amount: 1, hang: true } }] }]);
    const abort = new AbortController();
    const sent = createAgent({ provider, tools }).send('Pay.', { signal: abort.signal });
    await until(() => ledgerLines(ledger).length === 1);
    abort.abort();
    const { finishReason, toolCalls } = await sent;
    expect(finishReason).toBe('aborted');
    expect(toolCalls[0]).toMatchObject({ kind: 'cancelled' });
  });
});

it('runs a tool that only reads at once, and one that writes after a person agreed', async () => {
  const root = temporaryFolder();
  fs.writeFileSync(path.join(root, 'a.txt'), 'one');
  const { tools } = await toolsOf('v2', filesystem(root), { prefix: 'fs' });
  const file = path.join(root, 'a.txt');
  const provider = mockModel([
    { toolCalls: [{ name: 'fs_read_text_file', args: { path: file } }] },
    { toolCalls: [{ name: 'fs_write_file', args: { path: file, content: 'two' } }] },
    'Done.',
  ]);
  const agent = createAgent({ provider, tools, store: memoryStore() });
  const paused = await agent.send('Change it.', { sessionId: 'files' });
  expect(paused.finishReason).toBe('awaiting-approval');
  expect(paused.toolCalls[0]?.result).toMatchObject({ content: 'one' });
  expect(fs.readFileSync(file, 'utf8')).toBe('one');
  const result = await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
  expect(result.finishReason).toBe('stop');
  expect(fs.readFileSync(file, 'utf8')).toBe('two');
});

it('sends nothing once it is closed, and ends the server', async () => {
  const ledger = path.join(temporaryFolder(), 'ledger');
  const { tools, connections } = await toolsOf('v2', ledgerServer(ledger), { approve: 'never' });
  await tools.close();
  const call = await callOnce(tools, 'pay', { amount: 1 });
  expect(JSON.stringify(call?.result)).toContain('MCP_CLOSED');
  expect(ledgerLines(ledger)).toEqual([]);
  expect(() => process.kill(connections[0]?.pid ?? 0, 0)).toThrow('ESRCH');
});

describe('a tool that asks the user in the middle of its call', () => {
  async function givenAsked() {
    const ledger = path.join(temporaryFolder(), 'ledger');
    const { tools, connections } = await toolsOf('v2', ledgerServer(ledger));
    const provider = mockModel([{ toolCalls: [{ name: 'deploy', args: { env: 'prod' } }] }, 'Done.']);
    const agent = createAgent({ provider, tools, store: memoryStore() });
    const paused = await agent.send('Deploy.', { sessionId: 'ship' });
    return { agent, ledger, connections, id: paused.approvalId ?? '' };
  }

  it('asks a person field by field, and goes on when all is answered, over a new server process too', async () => {
    const { agent, ledger, connections, id } = await givenAsked();
    const [first] = await agent.approvals.list();
    expect(first).toMatchObject({
      kind: 'question',
      question: { text: 'Deploy to prod?\nconfirm: Really?', options: ['yes', 'no'], allowFreeText: false },
    });
    await killed(connections[0]);
    const second = await agent.approvals.answer({ id, answer: 'yes' });
    const [region] = await agent.approvals.list();
    expect(region?.question).toMatchObject({ options: ['eu', 'us'] });
    const third = await agent.approvals.answer({ id: second.approvalId ?? '', answer: 'EU' });
    expect(ledgerLines(ledger)).toHaveLength(1);
    const end = await agent.approvals.answer({ id: third.approvalId ?? '', answer: '-' });
    expect(end.toolCalls[0]?.result).toBe('deploy done');
    expect(ledgerLines(ledger).map(({ did }) => did)).toEqual(['ask', 'deploy']);
    expect(ledgerLines(ledger)[1]?.args).toEqual({
      env: 'prod',
      confirm: true,
      region: 'eu',
      state: 'state of prod',
    });
  });

  it('does not go on when the person declines', async () => {
    const { agent, ledger, id } = await givenAsked();
    const { toolCalls } = await agent.approvals.resolve({ id, approved: false });
    expect(toolCalls[0]).toMatchObject({ kind: 'rejected' });
    expect(ledgerLines(ledger)).toHaveLength(1);
  });
});
