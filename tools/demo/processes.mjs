// Starts a process of the demo, listens to it, and kills it when it has reported what we wait for.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** With the sentence that whoever runs the demo reads. */
export class ModelFailed extends Error {}

const workerFile = fileURLToPath(new URL('worker.mjs', import.meta.url));
let current;

/**
 * `killAt`: `{ isReached(message), delayMs }`; the process gets SIGKILL so long after the first message that fits.
 * Resolves with `{ type: 'killed', message, atMs }` or with the `{ type: 'result', ... }` that the process reported.
 */
export function runWorker(job, { onMessage, killAt }) {
  const child = fork(workerFile, [JSON.stringify(job)]);
  current = child;
  let reached;
  let result;
  let failure;
  const kill = () => child.kill('SIGKILL');

  child.on('message', (message) => {
    if (child.killed) return;
    onMessage(message, child.pid);
    if (message.type === 'result') result = message;
    if (message.type === 'failed') failure = message.reason;
    if (reached === undefined && killAt?.isReached(message)) {
      reached = message;
      if (killAt.delayMs > 0) setTimeout(kill, killAt.delayMs);
      else kill();
    }
    // It waits for us now: the kill that is due still finds it.
    if (result !== undefined && !child.killed) {
      if (reached === undefined) child.disconnect();
      else kill();
    }
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    // Only now is it really gone: a killed process stays visible to others until its parent has seen its end.
    child.once('exit', (code, signal) => {
      if (signal === 'SIGKILL' && reached !== undefined)
        resolve({ type: 'killed', message: reached, atMs: performance.now() });
      else if (code === 0 && result !== undefined) resolve(result);
      else if (failure !== undefined) reject(new ModelFailed(failure));
      else
        reject(new Error(`Process ${job.number} ended with ${signal ?? `code ${code}`} before its result.`));
    });
  });
}

/** For Ctrl-C: nothing stays behind. */
export function killCurrentWorker() {
  current?.kill('SIGKILL');
}
