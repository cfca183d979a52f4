/** Starts a worker, kills it with SIGKILL in the middle of a tool, starts another one, and counts what happened. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';

for (const file of ['agent.db', 'agent.db-wal', 'agent.db-shm', 'payments.txt'])
  rmSync(file, { force: true });

await runWorker('first', 'order', { killAt: 'shipping' });
await runWorker('second', 'recover');
console.log(`payments: ${readFileSync('payments.txt', 'utf8').trim()}`);

/** Ends when the worker has; `killAt` is the line at which it is killed. */
async function runWorker(name: string, task: string, { killAt }: { killAt?: string } = {}): Promise<void> {
  const worker = spawn(process.execPath, ['--import', 'tsx', 'worker.ts', task], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => worker.once('close', resolve));
  for await (const line of createInterface({ input: worker.stdout })) {
    console.log(`${name}: ${line}`);
    if (line === killAt) worker.kill('SIGKILL');
  }
  await ended;
  if (worker.signalCode !== null) console.log(`${name}: killed with ${worker.signalCode}`);
}
