/**
 * Mastra with LibSQL; needs Node 22.
 *
 * - `mastra:durable`: createDurableAgent, which keeps a snapshot of its workflow after each step.
 * - `mastra:memory`: an agent with Memory, which keeps the conversation when it ends (savePerStep: after each step).
 */
import path from 'node:path';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { createDurableAgent } from '@mastra/core/agent/durable';
import { createTool } from '@mastra/core/tools';
import { LibSQLStore } from '@mastra/libsql';
import { Memory } from '@mastra/memory';
import { z } from 'zod';
import { PROMPT, TOOL_DESCRIPTION, TOOL_NAME, answer, lookup, requireDone } from '../../workload.mjs';

const lookupTool = createTool({
  id: TOOL_NAME,
  description: TOOL_DESCRIPTION,
  inputSchema: z.object({ record: z.number() }),
  execute: async (args) => lookup(args.context ?? args),
});

export async function load(variant) {
  return async (directory) => {
    const storage = new LibSQLStore({ id: 'bench', url: `file:${path.join(directory, 'mastra.db')}` });
    await storage.init();
    const start = variant === 'durable' ? startDurable : startWithMemory;
    return {
      async run(id, task) {
        requireDone(await start(storage, id, task));
      },
      close: async () => storage.close?.(),
    };
  };
}

async function startDurable(storage, id, task) {
  const agent = createDurableAgent({
    agent: new Agent(agentOf(task)),
    maxSteps: task.turns + 2,
    shouldPersistSnapshot: ({ workflowStatus }) => workflowStatus !== 'success',
  });
  const { output, cleanup } = await registered(agent, storage).stream(PROMPT, {
    maxSteps: task.turns + 2,
    runId: id,
  });
  const { text } = await output.getFullOutput();
  cleanup();
  return lastText(text);
}

async function startWithMemory(storage, id, task) {
  const memory = new Memory({
    storage,
    options: { lastMessages: 5000, semanticRecall: false, workingMemory: { enabled: false } },
  });
  const agent = registered(new Agent({ ...agentOf(task), memory }), storage);
  const { text } = await agent.generate(PROMPT, {
    maxSteps: task.turns + 2,
    modelSettings: { maxRetries: 0 },
    memory: { thread: id, resource: 'bench' },
    savePerStep: true,
  });
  return lastText(text);
}

function agentOf(task) {
  return {
    id: 'bench',
    name: 'bench',
    instructions: 'Do the job.',
    model: scriptedModel(task),
    tools: { [TOOL_NAME]: lookupTool },
  };
}

function registered(agent, storage) {
  return new Mastra({ agents: { bench: agent }, storage, logger: false }).getAgent('bench');
}

/** The texts of all steps come as one. */
function lastText(text) {
  return text.slice(Math.max(0, text.indexOf('DONE')));
}

function scriptedModel(task) {
  const next = (prompt) => {
    const { role, content } = prompt.at(-1);
    return answer(task, role === 'tool' ? content.at(-1).toolCallId : undefined);
  };
  const usage = { inputTokens: 10, outputTokens: 10, totalTokens: 20 };
  const callPart = ({ id, args }) => ({
    type: 'tool-call',
    toolCallId: id,
    toolName: TOOL_NAME,
    input: JSON.stringify(args),
  });
  return {
    specificationVersion: 'v2',
    provider: 'bench',
    modelId: 'scripted',
    supportedUrls: {},
    async doGenerate({ prompt }) {
      const { text, calls } = await next(prompt);
      const finishReason = calls.length === 0 ? 'stop' : 'tool-calls';
      return { content: [{ type: 'text', text }, ...calls.map(callPart)], finishReason, usage, warnings: [] };
    },
    async doStream({ prompt }) {
      const { text, calls } = await next(prompt);
      const finishReason = calls.length === 0 ? 'stop' : 'tool-calls';
      const chunks = [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: 'text' },
        { type: 'text-delta', id: 'text', delta: text },
        { type: 'text-end', id: 'text' },
        ...calls.map(callPart),
        { type: 'finish', finishReason, usage },
      ];
      return { stream: ReadableStream.from(chunks) };
    },
  };
}
