/** The reference server over HTTP on loopback: sessions that a restart forgets, and a death in the middle of a call. */
import type { ChildProcess } from 'node:child_process';
import net from 'node:net';
import path from 'node:path';
import { createAgent, type JsonObject } from '@lousho/core';
import { manualClock, mockModel, testPorts } from '@lousho/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { mcpTools, type McpClient, type McpTools } from '../src/index.ts';
import {
  connectHttp,
  ledgerLines,
  startEverythingOverHttp,
  startLedgerOverHttp,
  temporaryFolder,
  until,
  type Line,
} from './support/servers.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function start(port: number, ledger?: string): Promise<ChildProcess> {
  const server = await (ledger === undefined
    ? startEverythingOverHttp(port)
    : startLedgerOverHttp(port, ledger));
  closing.push(() => server.kill('SIGKILL'));
  return server;
}

async function stop(server: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGKILL');
  await ended;
}

async function toolsAt(port: number, line: Line) {
  const clients: McpClient[] = [];
  const connect = async () => {
    const client = await connectHttp(line, `http://127.0.0.1:${port}/mcp`);
    clients.push(client);
    return client;
  };
  const tools = await mcpTools({ connect, approve: 'never' });
  closing.push(() => tools.close());
  return { tools, clients };
}

function agentThat(tools: McpTools, name: string, args: JsonObject, clock = manualClock()) {
  const provider = mockModel([{ toolCalls: [{ name, args }] }, 'Done.']);
  return createAgent({ provider, tools, ports: testPorts(clock) });
}

describe.each<Line>(['v1', 'v2'])('a client of line %s', (line) => {
  it('opens a new session when the server has forgotten the old one', async () => {
    const port = await freePort();
    const server = await start(port);
    const { tools, clients } = await toolsAt(port, line);
    await stop(server);
    await start(port);
    const { toolCalls } = await agentThat(tools, 'echo', { message: 'hi' }).send('Go.');
    expect(toolCalls[0]?.result).toBe('Echo: hi');
    expect(clients).toHaveLength(2);
  });

  it('says that nothing was sent while the server is away', async () => {
    const port = await freePort();
    const server = await start(port);
    const { tools } = await toolsAt(port, line);
    await stop(server);
    const { toolCalls } = await agentThat(tools, 'echo', { message: 'hi' }).send('Go.');
    expect(toolCalls[0]).toMatchObject({ isError: true, kind: 'execution' });
    expect(JSON.stringify(toolCalls[0]?.result)).toMatch(/MCP_UNREACHABLE: .*was not sent/);
  });

  it('gives up a call whose server died when its time is over, and does not send it again', async () => {
    const port = await freePort();
    const ledger = path.join(temporaryFolder(), 'ledger');
    const server = await start(port, ledger);
    const { tools } = await toolsAt(port, line);
    const clock = manualClock();
    const sent = agentThat(tools, 'pay', { amount: 7, hang: true }, clock).send('Go.');
    await until(() => ledgerLines(ledger).length === 1);
    await stop(server);
    await start(port, ledger);
    await clock.advance(60_000);
    const { toolCalls } = await sent;
    expect(JSON.stringify(toolCalls[0]?.result)).toMatch(/may or may not have taken effect/);
    expect(ledgerLines(ledger)).toHaveLength(1);
    const next = await agentThat(tools, 'pay', { amount: 8 }, clock).send('Go.');
    expect(next.toolCalls[0]?.result).toBe('pay done');
  });
});
