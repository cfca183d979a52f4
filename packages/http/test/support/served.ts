/** An agent behind a real HTTP server, for one test. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAgent, type Agent, type AgentConfig } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { onTestFinished } from 'vitest';
import { createChatHandler, type ChatHandlerOptions } from '../../src/index.ts';
import { nodeListener } from '../../src/node.ts';

export interface Served {
  readonly agent: Agent;
  readonly api: string;
  /** What went wrong and was not the client's fault. */
  readonly errors: readonly unknown[];
}

export async function serveChat(
  config: AgentConfig,
  options: Partial<ChatHandlerOptions> = {},
): Promise<Served> {
  const errors: unknown[] = [];
  const agent = createAgent({ store: memoryStore(), ...config });
  const handler = createChatHandler(agent, {
    authorize: () => true,
    onError: (error) => errors.push(error),
    ...options,
  });
  return { agent, errors, api: `${await serve(nodeListener(handler))}/api/chat` };
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export interface Deferred {
  readonly promise: Promise<void>;
  resolve(this: void): void;
}

export function deferred(): Deferred {
  let settle: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: () => settle() };
}
