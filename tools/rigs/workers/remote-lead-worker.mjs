// A process that runs one agent whose sub-agent works in another process, until it is done or killed.
//
// Started with one argument in JSON: `{ storeKind, storeFolder, url, steps }`. Says `working` when the run is about to begin, then
// `{ type: 'ended', result }`.
import { createAgent } from '@lousho/core';
import { remoteAgent } from '@lousho/http';
import { mockModel } from '@lousho/testing';
import { openStore } from './open-store.mjs';

const { storeKind, storeFolder, url, steps } = JSON.parse(process.argv[2]);
const store = openStore({ kind: storeKind, folder: storeFolder });

const task = { toolCalls: [{ name: 'task', args: { agent: 'cashier', prompt: 'Charge it.' } }], delayMs: 2 };
const agent = createAgent({
  store,
  maxSteps: steps + 1,
  provider: mockModel([...Array.from({ length: steps }, () => task), 'All done.'], { answerBy: 'step' }),
  approve: () => ({ approved: true, by: 'ann' }),
  subagents: [remoteAgent({ name: 'cashier', description: 'Handles money.', url })],
});

process.send('working');
const { finishReason, text, usage } = await agent.runOnce('order-7', 'go');
await store.close();
process.send({ type: 'ended', result: { finishReason, text, usage } }, () => process.disconnect());
