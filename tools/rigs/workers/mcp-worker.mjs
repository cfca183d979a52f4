// A process with an agent whose tools are those of an MCP server in a process of its own. Does one thing, prints the result, and ends.
//
// Started with one argument in JSON: `{ serverArgs, dbPath, sessionId, responses, action, tools }`. `responses` is what the model says in this
// process, `action` is `{ type: 'send', text }`, `{ type: 'resume' }` or `{ type: 'resolve', decision }`, `tools` are options of `mcpTools`.
import { createAgent } from '@lousho/core';
import { mcpTools } from '@lousho/mcp';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel } from '@lousho/testing';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const { serverArgs, dbPath, sessionId, responses, action, tools: toolOptions } = JSON.parse(process.argv[2]);

async function connect() {
  const client = new Client(
    { name: 'rig', version: '0.0.0' },
    {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: 'auto' },
      inputRequired: { autoFulfill: false },
    },
  );
  await client.connect(new StdioClientTransport({ command: process.execPath, args: serverArgs }));
  return client;
}

const store = new SqliteStore(dbPath);
const tools = await mcpTools({ connect, ...toolOptions });
const agent = createAgent({ provider: mockModel(responses), tools, store });
const { finishReason, approvalId, toolCalls } = await perform();
const approvals = await agent.approvals.list();
console.log(JSON.stringify({ finishReason, approvalId, toolCalls, approvals }));
await tools.close();
await store.close();

function perform() {
  switch (action.type) {
    case 'send':
      return agent.send(action.text, { sessionId });
    case 'resume':
      return agent.resume(sessionId);
    case 'resolve':
      return agent.approvals.resolve(action.decision);
    default:
      throw new Error(`Unknown action ${action.type}`);
  }
}
