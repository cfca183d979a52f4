// A process that runs one agent whose sub-agents delegate again, until it is done or killed.
//
// Started with one argument in JSON: `{ storeKind, storeFolder, logPath, steps }`. Each tool that begins is one line of the log. Says
// `working` when the run is about to begin, then `{ type: 'ended', result }`.
import { createAgent } from '@lousho/core';
import { mockModel } from '@lousho/testing';
import { loggedTool } from './logged-tool.mjs';
import { openStore } from './open-store.mjs';

const { storeKind, storeFolder, logPath, steps } = JSON.parse(process.argv[2]);
const store = openStore({ kind: storeKind, folder: storeFolder });

const tool = (name, needsApproval) => loggedTool(name, { logPath, needsApproval, takesMs: 3 });
const calls = (...names) => ({ toolCalls: names.map((name) => ({ name })), delayMs: 2 });
const tasks = (...agents) => ({
  toolCalls: agents.map((agent) => ({ name: 'task', args: { agent, prompt: 'Work.' } })),
  delayMs: 2,
});
const model = (...script) => mockModel(script, { answerBy: 'step' });

const mailer = {
  name: 'mailer',
  description: 'Mails.',
  provider: model(calls('mail'), 'Mailed.'),
  tools: [tool('mail', true)],
};
const agent = createAgent({
  store,
  maxSteps: steps + 1,
  provider: model(...Array.from({ length: steps }, () => tasks('manager', 'cashier')), 'All done.'),
  approve: () => ({ approved: true }),
  subagents: [
    {
      name: 'manager',
      description: 'Manages.',
      provider: model(tasks('mailer'), 'Managed.'),
      subagents: [mailer],
    },
    {
      name: 'cashier',
      description: 'Handles money.',
      provider: model(calls('look', 'look'), calls('charge'), 'Paid.'),
      tools: [tool('look', false), tool('charge', true)],
    },
  ],
});

process.send('working');
const { finishReason, text, usage } = await agent.runOnce('order-7', 'go');
await store.close();
process.send({ type: 'ended', result: { finishReason, text, usage } }, () => process.disconnect());
