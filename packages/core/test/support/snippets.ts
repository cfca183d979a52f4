/** Runs one seed snippet as its user would: with what its application has around it, and its console watched. */
import type { AgentStore, StoreOptions, Tool } from '@lousho/contract';
import { vi } from 'vitest';
import type { Agent, AgentConfig } from '../../src/index.ts';

/** What a snippet finds: ambient values, the tools of its agent, and the store that was there before. */
export interface SnippetSetting {
  readonly globals?: { readonly [name: string]: unknown };
  readonly tools?: readonly Tool[];
  readonly store?: AgentStore;
}
export interface SnippetRun {
  /** What the snippet exports. */
  readonly module: { readonly [name: string]: unknown };
  /** Arguments of each `console.log`. */
  readonly printed: readonly (readonly unknown[])[];
  /** What it made, in order. */
  readonly agents: readonly Agent[];
  readonly tools: readonly Tool[];
  readonly memoryStoreOptions: readonly (StoreOptions | undefined)[];
  /** What its top level threw. */
  readonly error?: unknown;
  close(): Promise<void>;
}

export async function runSnippet(name: string, setting: SnippetSetting): Promise<SnippetRun> {
  const agents: Agent[] = [];
  const tools: Tool[] = [];
  const memoryStoreOptions: (StoreOptions | undefined)[] = [];
  const opened: { close(): Promise<void> }[] = [];
  vi.resetModules();
  vi.doMock('@lousho/build-ai-agent', async (original) => {
    const real = await original<typeof import('./build-ai-agent.ts')>();
    return {
      ...real,
      createAgent(config: AgentConfig) {
        const agent = real.createAgent({ ...config, ...(setting.tools && { tools: setting.tools }) });
        agents.push(agent);
        return agent;
      },
      memoryStore(options?: StoreOptions) {
        memoryStoreOptions.push(options);
        return setting.store ?? real.memoryStore(options);
      },
      defineTool(definition: Parameters<typeof real.defineTool>[0]) {
        const tool = real.defineTool(definition);
        tools.push(tool);
        return tool;
      },
    };
  });
  vi.doMock('@lousho/build-ai-agent/sqlite', async (original) => {
    const { SqliteStore } = await original<typeof import('@lousho/store-sqlite')>();
    class WatchedStore extends SqliteStore {
      constructor(...args: ConstructorParameters<typeof SqliteStore>) {
        super(...args);
        opened.push(this);
      }
    }
    return { SqliteStore: WatchedStore };
  });
  for (const [global, value] of Object.entries(setting.globals ?? {})) vi.stubGlobal(global, value);
  const printed: (readonly unknown[])[] = [];
  const log = vi.spyOn(console, 'log').mockImplementation((...args: unknown[]) => void printed.push(args));
  const close = async (): Promise<void> => {
    for (const store of opened) await store.close();
  };
  const made = { printed, agents, tools, memoryStoreOptions, close };
  try {
    const module = (await import(`../seed-snippets/${name}.ts`)) as SnippetRun['module'];
    return { module, ...made };
  } catch (error) {
    return { module: {}, ...made, error };
  } finally {
    log.mockRestore();
    vi.unstubAllGlobals();
    vi.doUnmock('@lousho/build-ai-agent');
    vi.doUnmock('@lousho/build-ai-agent/sqlite');
  }
}
