// A process that serves one agent's JSON routes on loopback until it is killed.
//
// Started with one argument in JSON: `{ storeKind, storeFolder, logPath, port }`. Each tool that begins is one line of the log. Says
// `{ type: 'serving', port }`; a port of 0 is any that is free.
import { createServer } from 'node:http';
import { createAgent } from '@lousho/core';
import { createAgentRoutes } from '@lousho/http';
import { nodeListener } from '@lousho/http/node';
import { mockModel } from '@lousho/testing';
import { loggedTool } from './logged-tool.mjs';
import { openStore } from './open-store.mjs';

const { storeKind, storeFolder, logPath, port } = JSON.parse(process.argv[2]);

const tool = (name, needsApproval) => loggedTool(name, { logPath, needsApproval, takesMs: 30 });
const calls = (...names) => ({ toolCalls: names.map((name) => ({ name })), delayMs: 20 });
const agent = createAgent({
  name: 'cashier',
  store: openStore({ kind: storeKind, folder: storeFolder }),
  provider: mockModel([calls('look'), calls('charge'), 'Paid.'], { answerBy: 'step' }),
  tools: [tool('look', false), tool('charge', true)],
});
const server = createServer(nodeListener(createAgentRoutes(agent, { authorize: () => true })));
server.listen(port, '127.0.0.1', () => process.send({ type: 'serving', port: server.address().port }));
