/** The first process: begins the run, which pauses at the refund, and ends. */
import { SqliteStore } from '@lousho/store-sqlite';
import { refundDesk } from './agent.ts';

const store = new SqliteStore('./agent.db');
const agent = refundDesk(store);

// Sent again, it gives the stored pause or the stored answer: a run waits once, however often somebody asks.
const result = await agent.runOnce('order-8', 'Refund order 8.');
if (result.finishReason !== 'awaiting-approval') console.log(`decided before: ${result.text}`);
for (const { toolName, args } of await agent.approvals.list())
  console.log(`waiting for a person: ${toolName} ${JSON.stringify(args)}`);
await store.close();
