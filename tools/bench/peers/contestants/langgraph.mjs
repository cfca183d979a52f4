/**
 * LangGraph.js: a graph of a model node and its ToolNode, with a checkpointer.
 *
 * - `langgraph:sqlite`: SqliteSaver as it is by default: synchronous=NORMAL, written beside the run (durability 'async').
 * - `langgraph:sqlite-sync`: the same with what a power cut asks for: synchronous=FULL, each step waits for its write.
 * - `langgraph:memory`: MemorySaver.
 *
 * The database driver is that of the repository, which is compiled already; it is the same version.
 */
import path from 'node:path';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { END, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { z } from 'zod';
import Database from '../../../../node_modules/better-sqlite3/lib/index.js';
import { PROMPT, TOOL_DESCRIPTION, TOOL_NAME, answer, lookup, requireDone } from '../../workload.mjs';

const lookupTool = tool(async (args) => lookup(args), {
  name: TOOL_NAME,
  description: TOOL_DESCRIPTION,
  schema: z.object({ record: z.number() }),
});

export async function load(variant) {
  return (directory) => openGraphs(openSaver(variant, directory), variant);
}

function openSaver(variant, directory) {
  if (variant === 'memory') return new MemorySaver();
  const saver = new SqliteSaver(new Database(path.join(directory, 'langgraph.db')));
  if (variant === 'sqlite-sync') saver.db.pragma('synchronous = FULL');
  return saver;
}

function openGraphs(saver, variant) {
  const durability = variant === 'sqlite-sync' ? 'sync' : 'async';
  const invoke = async (id, input, task) => {
    const result = await graphFor(task, saver).invoke(input, {
      configurable: { thread_id: id },
      recursionLimit: task.turns * 2 + 10,
      durability,
    });
    requireDone(result.messages.at(-1).content);
  };
  return {
    run: (id, task) => invoke(id, { messages: [new HumanMessage(PROMPT)] }, task),
    resume: (id, task) => invoke(id, null, task),
    listUnfinished: () => countUnfinished(saver),
    close: async () => saver.db?.close(),
  };
}

function graphFor(task, saver) {
  const model = new ScriptedModel(task);
  return new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addNode('tools', new ToolNode([lookupTool]))
    .addEdge(START, 'model')
    .addConditionalEdges('model', ({ messages }) => (messages.at(-1).tool_calls.length > 0 ? 'tools' : END), [
      'tools',
      END,
    ])
    .addEdge('tools', 'model')
    .compile({ checkpointer: saver });
}

/** There is no query for it: every checkpoint is read, and the newest of each thread says whether it came to an end. */
async function countUnfinished(saver) {
  const newest = new Map();
  for await (const entry of saver.list({ configurable: {} })) {
    const id = entry.config.configurable.thread_id;
    const known = newest.get(id);
    if (known === undefined || known.checkpoint.id < entry.checkpoint.id) newest.set(id, entry);
  }
  return [...newest.values()].filter(({ checkpoint }) => {
    const last = checkpoint.channel_values.messages?.at(-1);
    return last === undefined || !String(last.content).startsWith('DONE');
  }).length;
}

class ScriptedModel extends BaseChatModel {
  constructor(task) {
    super({});
    this.task = task;
  }

  _llmType() {
    return 'scripted';
  }

  async _generate(messages) {
    const last = messages.at(-1);
    const { text, calls } = await answer(
      this.task,
      last.getType() === 'tool' ? last.tool_call_id : undefined,
    );
    const message = new AIMessage({
      content: text,
      tool_calls: calls.map(({ id, args }) => ({ id, name: TOOL_NAME, args, type: 'tool_call' })),
    });
    return { generations: [{ text, message }] };
  }
}
