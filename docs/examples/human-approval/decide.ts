/** Another process, maybe days later: shows what waits, decides it, and finishes the run. */
import { SqliteStore } from '@lousho/store-sqlite';
import { refundDesk } from './agent.ts';

const approved = process.argv[2] === 'yes';

const store = new SqliteStore('./agent.db');
const agent = refundDesk(store);

const [request] = await agent.approvals.list();
if (request === undefined) {
  console.log('nothing waits; npm start asks for a refund');
} else {
  const result = await agent.approvals.resolve({
    id: request.id,
    by: 'ada',
    ...(approved ? { approved, args: { order: 8, cents: 4000 } } : { approved, note: 'Not after 30 days.' }),
  });
  console.log(result.text);
}
await store.close();
