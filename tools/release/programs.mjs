// What a user of each package would write first, with that package installed and nothing else of ours but what its README installs beside it.
//
// A source is TypeScript that plain JavaScript engines nearly understand: a function `main` that gives one line. `everywhere` says that it
// runs in workerd, too. A package that is published without a program here fails the check.

const provider = `{
  providerId: 'scripted',
  modelId: 'scripted-1',
  generate: async () => ({
    message: { role: 'assistant' as const, content: [{ type: 'text' as const, text: 'Hello.' }] },
    finishReason: 'stop' as const,
    usage: { inputTokens: 1, outputTokens: 1 },
  }),
}`;

/** Takes a lease, and lets nobody else have it. */
function leases(name, importName, open) {
  return {
    source: `
      import { ${importName} } from '${name}';
      export async function main(): Promise<string> {
        const store = ${open};
        const mine = await store.checkpoints.acquireLease('order-7', 'a', 30_000);
        const theirs = await store.checkpoints.acquireLease('order-7', 'b', 30_000);
        await store.close();
        return [mine !== false, theirs].join(' ');
      }`,
    prints: 'true false',
  };
}

export const programs = {
  '@lousho/contract': {
    everywhere: true,
    source: `
      import { isSDKError, SDKError, toJson } from '@lousho/contract';
      export async function main(): Promise<string> {
        const error = new SDKError('LOUSHO_STORE_READ_FAILED', { operation: 'load' });
        return [JSON.stringify(toJson({ at: new Date(0) })), isSDKError(error, 'LOUSHO_STORE_READ_FAILED'), error.retryable].join(' ');
      }`,
    prints: '{"ok":true,"json":{"at":"1970-01-01T00:00:00.000Z"}} true true',
  },
  '@lousho/executor': {
    everywhere: true,
    source: `
      import { AgentExecutor } from '@lousho/executor';
      export async function main(): Promise<string> {
        const result = await AgentExecutor.execute({ agent: {}, input: 'Hello', provider: ${provider} });
        return [result.text, result.finishReason].join(' ');
      }`,
    prints: 'Hello. stop',
  },
  '@lousho/core': {
    everywhere: true,
    source: `
      import { createAgent, defineTool } from '@lousho/core';
      export async function main(): Promise<string> {
        const tool = defineTool({
          name: 'greet',
          description: 'Greets.',
          input: { type: 'object', properties: {} },
          execute: async () => 'Hello.',
        });
        const agent = createAgent({ provider: ${provider}, tools: [tool] });
        return (await agent.send('Hello')).text;
      }`,
    prints: 'Hello.',
  },
  '@lousho/http': {
    everywhere: true,
    beside: ['@lousho/core'],
    source: `
      import { createAgent } from '@lousho/core';
      import { createAgentRoutes, createChatHandler } from '@lousho/http';
      export async function main(): Promise<string> {
        const agent = createAgent({ provider: ${provider} });
        const handler = createChatHandler(agent, { authorize: () => ({ id: 'ada' }) });
        const { status } = await handler(new Request('http://localhost/api/chat/none/nowhere'));
        return [status, typeof createAgentRoutes].join(' ');
      }`,
    prints: '404 function',
  },
  '@lousho/mcp': {
    everywhere: true,
    source: `
      import { mcpTools } from '@lousho/mcp';
      export async function main(): Promise<string> {
        const tools = await mcpTools({
          client: {
            listTools: async () => ({ tools: [{ name: 'far', inputSchema: { type: 'object' } }] }),
            callTool: async () => ({}),
            close: async () => undefined,
          },
        });
        return tools.map(({ name }) => name).join(' ');
      }`,
    prints: 'far',
  },
  '@lousho/otel': {
    everywhere: true,
    source: `
      import { GENAI_CONVENTIONS, openTelemetry } from '@lousho/otel';
      export async function main(): Promise<string> {
        return [typeof GENAI_CONVENTIONS, typeof openTelemetry()].join(' ');
      }`,
    prints: 'string object',
  },
  '@lousho/provider-ai-sdk': {
    everywhere: true,
    source: `
      import { fromAiSdk } from '@lousho/provider-ai-sdk';
      export async function main(): Promise<string> {
        const { providerId, modelId } = fromAiSdk({
          specificationVersion: 'v3',
          provider: 'openai.chat',
          modelId: 'some-model',
          doGenerate: async () => ({}),
          doStream: async () => ({}),
        });
        return [typeof providerId, modelId].join(' ');
      }`,
    prints: 'string some-model',
  },
  '@lousho/store-memory': {
    everywhere: true,
    ...leases('@lousho/store-memory', 'memoryStore', 'memoryStore()'),
  },
  '@lousho/store-file': leases('@lousho/store-file', 'fileStore', `fileStore('./runs-' + process.pid)`),
  '@lousho/store-sqlite': leases(
    '@lousho/store-sqlite',
    'SqliteStore',
    `new SqliteStore('./runs-' + process.pid + '.db')`,
  ),
  '@lousho/store-kit': {
    everywhere: true,
    beside: ['@lousho/store-memory'],
    source: `
      import { copyStore, encryptedStore } from '@lousho/store-kit';
      import { memoryStore } from '@lousho/store-memory';
      export async function main(): Promise<string> {
        const store = encryptedStore(memoryStore(), [{ id: 'k', key: new Uint8Array(32) }]);
        return String((await copyStore(memoryStore(), store)).left.length);
      }`,
    prints: '0',
  },
  '@lousho/store-kv': {
    everywhere: true,
    source: `
      import { KVStore } from '@lousho/store-kv';
      export async function main(): Promise<string> {
        const values = new Map<string, string>();
        const store = new KVStore({
          get: async (key: string) => values.get(key) ?? null,
          put: async (key: string, value: string) => void values.set(key, value),
          delete: async (key: string) => void values.delete(key),
        } as never);
        return String(await store.checkpoints.load('order-7'));
      }`,
    prints: 'null',
  },
  '@lousho/testing': {
    everywhere: true,
    source: `
      import { mockModel } from '@lousho/testing';
      import { conformanceRules } from '@lousho/testing/conformance';
      import { crashSweep } from '@lousho/testing/crash';
      import { simulate } from '@lousho/testing/simulation';
      export async function main(): Promise<string> {
        const model = mockModel(['Hello.']);
        return [model.remaining, conformanceRules.length > 50, typeof crashSweep, typeof simulate].join(' ');
      }`,
    prints: '1 true function function',
  },
  '@lousho/tools-workspace': {
    source: `
      import { workspaceTools } from '@lousho/tools-workspace';
      export async function main(): Promise<string> {
        return workspaceTools({ root: '.' }).map(({ name }) => name).includes('read_file') ? 'read_file' : 'none';
      }`,
    prints: 'read_file',
  },
  '@lousho/cli': {
    source: `
      import { defineConfig } from '@lousho/cli';
      export async function main(): Promise<string> {
        return JSON.stringify(defineConfig({ store: 'sqlite:./jobs.db' }));
      }`,
    prints: '{"store":"sqlite:./jobs.db"}',
  },
};
