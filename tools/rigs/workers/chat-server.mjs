// A process that serves one agent's chat on loopback until it is killed.
//
// Started with one argument in JSON: `{ storeFolder, logPath, hangsIn }`. Each tool that begins is one line of the log; the one named by
// `hangsIn` never ends. Says `{ type: 'serving', port }`, then `{ type: 'begun', tool }` for each tool that begins.
import fs from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { createAgent, defineTool } from '@lousho/core';
import { createChatHandler } from '@lousho/http';
import { nodeListener } from '@lousho/http/node';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel } from '@lousho/testing';

const { storeFolder, logPath, hangsIn } = JSON.parse(process.argv[2]);

const tool = (name, needsApproval) =>
  defineTool({
    name,
    description: name,
    input: { type: 'object' },
    needsApproval,
    async execute() {
      fs.appendFileSync(logPath, `${name}\n`);
      process.send({ type: 'begun', tool: name });
      if (name === hangsIn) await new Promise(() => undefined);
      return `${name} done`;
    },
  });
const agent = createAgent({
  store: new SqliteStore(path.join(storeFolder, 'chat.db')),
  provider: mockModel(
    [
      { text: 'Let me look.', toolCalls: [{ name: 'look', id: 'call_look' }] },
      { text: 'I will refund it.', toolCalls: [{ name: 'refund', id: 'call_refund' }] },
      'Done.',
    ],
    { answerBy: 'step' },
  ),
  tools: [tool('look', false), tool('refund', true)],
});
const server = createServer(nodeListener(createChatHandler(agent, { authorize: () => true })));
server.listen(0, '127.0.0.1', () => process.send({ type: 'serving', port: server.address().port }));
