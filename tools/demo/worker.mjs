// One process of the demo. It does one task and reports to its parent, which may kill it at any moment.
//
// Started with one argument, a job in JSON: `{ folder, number, orders, pace, task, live? }`, where a task is `{ type: 'continue' }` or
// `{ type: 'decide', id, approved }`, and `live` the model that answers in the place of the script.
import path from 'node:path';
import { LLMProviderError, isSDKError } from '@lousho/core';
import { SqliteStore } from '@lousho/store-sqlite';
import { openLedger } from './ledger.mjs';
import { SESSION_ID, createOrderAgent, inputFor, liveInputFor } from './order-agent.mjs';

const BUSY_RETRY_MS = 200;

const { folder, number, orders, pace, task, live } = JSON.parse(process.argv[2]);
const store = new SqliteStore(path.join(folder, 'runs.db'));
const ledger = openLedger(folder);
const liveModel = live && (await import('./live-model.mjs')).liveProvider(live);
const agent = createOrderAgent({ store, ledger, orders, pace, processNumber: number, tell, liveModel });

const result = await perform(task).catch(giveUp);
const approvals = await agent.approvals.list();
// The parent says goodbye, and may still kill us before it does.
process.once('disconnect', async () => {
  await agent.shutdown();
  await store.close();
  ledger.close();
});
tell({ type: 'result', finishReason: result.finishReason, text: result.text, approvals });

async function perform(task) {
  switch (task.type) {
    case 'continue':
      return goOn();
    case 'decide':
      tell({ type: 'deciding', id: task.id });
      return whenFree(() => agent.approvals.resolve({ id: task.id, approved: task.approved, by: 'you' }));
    default:
      throw new Error(`Unknown task ${task.type}`);
  }
}

/** What every process does that starts, the first one included: look into the store, and go on from there. */
async function goOn() {
  const [pending] = await agent.pending();
  tell({ type: 'pending', run: pending });
  // Nothing is stored before the first response. The input id makes this safe in every other case too: an input that the run
  // holds already is not added again.
  if (pending === undefined)
    return agent.send(live ? liveInputFor(orders) : inputFor(orders), {
      sessionId: SESSION_ID,
      inputId: `input-${orders[0]}`,
    });
  if (pending.status === 'awaiting-approval') return { finishReason: 'awaiting-approval', text: '' };
  return whenFree(() => agent.resume(pending.sessionId));
}

/** A store that cannot prove that a process is dead keeps the run busy until its lease has run out. */
async function whenFree(attempt) {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isSDKError(error, 'LOUSHO_SESSION_BUSY')) throw error;
      tell({ type: 'busy' });
      await new Promise((resolve) => setTimeout(resolve, BUSY_RETRY_MS));
    }
  }
}

/** A model that does not answer is not the demo's fault, and the run is stored: whoever runs it reads why. */
function giveUp(error) {
  if (error instanceof LLMProviderError)
    tell({ type: 'failed', reason: `The model failed: ${error.message}` });
  throw error;
}

function tell(message) {
  if (process.connected) process.send(message);
}
