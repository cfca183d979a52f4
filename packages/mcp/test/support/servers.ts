/** Real MCP servers in processes of their own, and clients of both lines of the SDK for them. */
import { spawn, type ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioClientTransportV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as StreamableHTTPClientTransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { McpClient } from '../../src/index.ts';

const require = createRequire(import.meta.url);
const binOf = (name: string): string =>
  path.join(path.dirname(require.resolve(`@modelcontextprotocol/${name}/package.json`)), 'dist/index.js');

export const everything = [binOf('server-everything'), 'stdio'];
export const filesystem = (root: string): string[] => [binOf('server-filesystem'), root];
export const ledgerServer = (ledger: string): string[] => [
  fileURLToPath(new URL('./ledger-server.mjs', import.meta.url)),
  ledger,
];

export type Line = 'v1' | 'v2';
export interface Connected {
  readonly client: McpClient;
  /** The server's process. */
  readonly pid: number;
}

const about = { name: 'lousho-tests', version: '0.0.0' };

export async function connectStdio(line: Line, args: readonly string[]): Promise<Connected> {
  const server = { command: process.execPath, args: [...args], stderr: 'ignore' as const };
  if (line === 'v1') {
    const transport = new StdioClientTransportV1(server);
    const client = new ClientV1(about);
    await client.connect(transport);
    return { client, pid: transport.pid ?? 0 };
  }
  const transport = new StdioClientTransport(server);
  const client = clientV2();
  await client.connect(transport);
  return { client, pid: transport.pid ?? 0 };
}

export async function connectHttp(line: Line, url: string): Promise<McpClient> {
  if (line === 'v1') {
    const client = new ClientV1(about);
    // Its optional fields are typed without `undefined`, which only `exactOptionalPropertyTypes` tells apart.
    const transport = new StreamableHTTPClientTransportV1(new URL(url)) as Parameters<ClientV1['connect']>[0];
    await client.connect(transport);
    return client;
  }
  const client = clientV2();
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

function clientV2(): Client {
  return new Client(about, {
    capabilities: { elicitation: { form: {}, url: {} } },
    versionNegotiation: { mode: 'auto' },
    inputRequired: { autoFulfill: false },
  });
}

/** The reference server over Streamable HTTP with sessions, on loopback. */
export function startEverythingOverHttp(port: number): Promise<ChildProcess> {
  return listening([binOf('server-everything'), 'streamableHttp'], { PORT: String(port) });
}

/** The ledger server over HTTP without sessions, on loopback. */
export function startLedgerOverHttp(port: number, ledger: string): Promise<ChildProcess> {
  return listening([...ledgerServer(ledger), String(port)]);
}

async function listening(args: readonly string[], env: Record<string, string> = {}): Promise<ChildProcess> {
  const server = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`The server ended with ${code}`)));
    const read = (data: Buffer): void => {
      if (String(data).includes('listening')) resolve();
    };
    server.stdout.on('data', read);
    server.stderr.on('data', read);
  });
  return server;
}

export function temporaryFolder(): string {
  return fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-mcp-')));
}

/** What the ledger server did, in order. A line is there when its end is. */
export function ledgerLines(
  file: string,
): { readonly did: string; readonly args: unknown; readonly key?: string }[] {
  if (!fs.existsSync(file)) return [];
  return fs
    .readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as ReturnType<typeof ledgerLines>[number]);
}

const GIVE_UP_AFTER_MS = 30_000;

/** What another process does can only be looked at again and again. */
export async function until(isThere: () => boolean): Promise<void> {
  const giveUpAtMs = performance.now() + GIVE_UP_AFTER_MS;
  while (!isThere()) {
    if (performance.now() > giveUpAtMs) throw new Error(`It never came true: ${String(isThere)}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
