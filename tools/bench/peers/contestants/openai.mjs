/**
 * OpenAI Agents SDK, which has no store. `openai:state`: its run state as text, whole, in one row of SQLite (synchronous=FULL) before
 * each model call, as its guide for people in the loop keeps it over a pause. Its loop with nothing kept is `openai:none`.
 */
import path from 'node:path';
import { Agent, RunState, Runner, Usage, setTracingDisabled, tool } from '@openai/agents';
import { z } from 'zod';
import Database from '../../../../node_modules/better-sqlite3/lib/index.js';
import { PROMPT, TOOL_DESCRIPTION, TOOL_NAME, answer, lookup, requireDone } from '../../workload.mjs';

setTracingDisabled(true);

const lookupTool = tool({
  name: TOOL_NAME,
  description: TOOL_DESCRIPTION,
  parameters: z.object({ record: z.number() }),
  execute: async (args) => lookup(args),
});
const runner = new Runner({ tracingDisabled: true });

export async function load(variant) {
  return (directory) =>
    variant === 'none' ? openLoop() : openStates(openTable(path.join(directory, 'openai.db')));
}

function openLoop() {
  return {
    async run(_id, task) {
      const result = await runner.run(agentFor(task), PROMPT, { maxTurns: task.turns + 2 });
      requireDone(result.finalOutput);
    },
    close: async () => {},
  };
}

function openStates(table) {
  const drive = async (id, task, startOf) => {
    let run;
    const save = (status) => table.save(id, status, run.state.toString());
    // Before the first call there is nothing but the input.
    const agent = agentFor(task, () => {
      if (run !== undefined) save('running');
    });
    // Streamed, because only then the state can be had while it runs.
    run = await runner.run(agent, await startOf(agent), { maxTurns: task.turns + 2, stream: true });
    await run.toStream().pipeTo(new WritableStream());
    await run.completed;
    save('finished');
    requireDone(run.finalOutput);
  };
  return {
    run: (id, task) => drive(id, task, async () => PROMPT),
    resume: (id, task) => drive(id, task, (agent) => RunState.fromString(agent, table.load(id))),
    close: async () => table.close(),
  };
}

function openTable(file) {
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE IF NOT EXISTS run (id TEXT PRIMARY KEY, status TEXT, state TEXT)');
  const save = db.prepare('INSERT OR REPLACE INTO run VALUES (?, ?, ?)');
  const load = db.prepare('SELECT state FROM run WHERE id = ?').pluck();
  return { save: (...row) => save.run(...row), load: (id) => load.get(id), close: () => db.close() };
}

function agentFor(task, beforeModelCall = () => {}) {
  const model = new ScriptedModel(task, beforeModelCall);
  return new Agent({ name: 'bench', instructions: 'Do the job.', model, tools: [lookupTool] });
}

class ScriptedModel {
  constructor(task, beforeModelCall) {
    this.task = task;
    this.beforeModelCall = beforeModelCall;
  }

  async getResponse({ input }) {
    this.beforeModelCall();
    const last = Array.isArray(input) ? input.at(-1) : undefined;
    const callId = last?.type === 'function_call_result' ? last.callId : undefined;
    const { text, calls } = await answer(this.task, callId);
    const id = callId ?? 'first';
    return {
      usage: new Usage({ requests: 1, inputTokens: 10, outputTokens: 10, totalTokens: 20 }),
      responseId: `response-${id}`,
      output: [
        {
          type: 'message',
          role: 'assistant',
          id: `message-${id}`,
          status: 'completed',
          content: [{ type: 'output_text', text }],
        },
        ...calls.map((call) => ({
          type: 'function_call',
          id: `item-${call.id}`,
          callId: call.id,
          name: TOOL_NAME,
          status: 'completed',
          arguments: JSON.stringify(call.args),
        })),
      ],
    };
  }

  async *getStreamedResponse(request) {
    const { responseId, usage, output } = await this.getResponse(request);
    const { requests, inputTokens, outputTokens, totalTokens } = usage;
    yield {
      type: 'response_done',
      response: { id: responseId, usage: { requests, inputTokens, outputTokens, totalTokens }, output },
    };
  }
}
