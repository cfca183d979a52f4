/**
 * Lousho as an application uses it: the built packages, one agent, `send` with a session id, leases as they are by default.
 *
 * - `lousho:sqlite`: SqliteStore as it is by default, which survives a power cut.
 * - `lousho:sqlite-process`: SqliteStore with `durability: 'process'`.
 * - `lousho:file`: fileStore as it is by default.
 * - `lousho:memory`: memoryStore with its history of 50.
 * - `lousho:kv`: KVStore on a namespace in memory that counts what is put.
 * - `lousho:none`: no store.
 */
import path from 'node:path';
import { createAgent, defineTool } from '@lousho/core';
// The copy that our packages use: an application has one, and the other contestants bring another.
import { z } from '../../../node_modules/zod/index.js';
import { PROMPT, TOOL_DESCRIPTION, TOOL_NAME, answer, lookup, requireDone } from '../workload.mjs';

const tool = defineTool({
  name: TOOL_NAME,
  description: TOOL_DESCRIPTION,
  input: z.object({ record: z.number() }),
  execute: async (args) => lookup(args),
});

export async function load(variant) {
  const openStore = await loadStore(variant);
  return (directory) => openAgents(openStore(directory), variant === 'none');
}

async function loadStore(variant) {
  switch (variant) {
    case 'none':
      return () => undefined;
    case 'memory': {
      const { memoryStore } = await import('@lousho/store-memory');
      return () => memoryStore();
    }
    case 'sqlite':
    case 'sqlite-process': {
      const { SqliteStore } = await import('@lousho/store-sqlite');
      const options = variant === 'sqlite' ? {} : { durability: 'process' };
      return (directory) => new SqliteStore(path.join(directory, 'lousho.db'), options);
    }
    case 'file': {
      const { fileStore } = await import('@lousho/store-file');
      return (directory) => fileStore(path.join(directory, 'runs'));
    }
    case 'kv': {
      const { KVStore } = await import('@lousho/store-kv');
      return () => {
        const namespace = new CountingNamespace();
        return Object.assign(new KVStore(namespace), { figures: () => ({ putBytes: namespace.putBytes }) });
      };
    }
    default:
      throw new Error(`There is no contestant lousho:${variant}.`);
  }
}

function openAgents(store, isStoreless) {
  // One agent a task, as an application makes one at its start and sends to it many times.
  const agents = new Map();
  const agentFor = (task) => {
    let agent = agents.get(task);
    if (agent === undefined) {
      agent = createAgent({
        provider: scriptedProvider(task),
        store,
        tools: [tool],
        maxSteps: task.turns + 2,
      });
      agents.set(task, agent);
    }
    return agent;
  };
  return {
    async run(id, task) {
      const result = await agentFor(task).send(PROMPT, isStoreless ? {} : { sessionId: id });
      requireDone(result.text);
    },
    async resume(id, task) {
      const result = await agentFor(task).resume(id);
      requireDone(result.text);
    },
    async listUnfinished(task) {
      const pending = await agentFor(task).pending();
      return pending.length;
    },
    load: (id) => store.checkpoints.load(id),
    async history(id, limit) {
      const entries = await store.checkpoints.history(id, { limit });
      if (entries.length !== limit) throw new Error(`The history has ${entries.length} entries.`);
    },
    fork: (id, task, step) => agentFor(task).fork(id, { fromStep: step }),
    close: async () => store?.close(),
    /** What only this store can count. */
    figures: () => store?.figures?.() ?? {},
  };
}

/** As much of a Workers KV namespace as one location shows, with no limits of its own. */
class CountingNamespace {
  putBytes = 0;
  #values = new Map();

  async get(key) {
    return this.#values.get(key)?.value ?? null;
  }

  async put(key, value, { metadata } = {}) {
    this.putBytes += Buffer.byteLength(value) + Buffer.byteLength(JSON.stringify(metadata ?? ''));
    this.#values.set(key, { value, metadata });
  }

  async delete(key) {
    this.#values.delete(key);
  }

  async list({ prefix = '' } = {}) {
    const keys = [...this.#values]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, { metadata }]) => ({ name, metadata }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    return { keys, list_complete: true };
  }
}

function scriptedProvider(task) {
  return {
    providerId: 'bench',
    modelId: 'scripted',
    async generate({ messages }) {
      const last = messages.at(-1);
      const { text, calls } = await answer(
        task,
        last.role === 'tool' ? last.content[0].toolCallId : undefined,
      );
      return {
        message: {
          role: 'assistant',
          content: [
            { type: 'text', text },
            ...calls.map(({ id, args }) => ({
              type: 'tool-call',
              toolCallId: id,
              toolName: TOOL_NAME,
              args,
            })),
          ],
        },
        finishReason: calls.length === 0 ? 'stop' : 'tool-calls',
        usage: { inputTokens: 10, outputTokens: 10 },
      };
    },
  };
}
