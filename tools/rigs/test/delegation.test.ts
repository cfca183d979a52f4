/** One run whose sub-agents delegate again, with calls that wait on two levels, killed with SIGKILL at moments that a seed chooses. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RunUsage } from '@lousho/contract';
import { expect, it, onTestFinished } from 'vitest';
import { seededRandom } from '../src/random.ts';
import { openStore, type StoreKind } from '../workers/open-store.mjs';

const KILLS = 40;
/** Each gives two tasks, one of which is given on: 1 response of the lead, 2 + 2 of the manager and its mailer, 3 of the cashier. */
const STEPS = 25;
const CALLS_A_STEP = 8;

const workerFile = fileURLToPath(new URL('../workers/delegating-worker.mjs', import.meta.url));

interface Ended {
  readonly result: { readonly finishReason: string; readonly text: string; readonly usage: RunUsage };
}

it.each<StoreKind>(['sqlite', 'file'])(
  'starts no sub-agent over, runs what was approved at most once, counts every model call once (%s)',
  { timeout: 300_000 },
  async (storeKind) => {
    const random = seededRandom(`delegation (${storeKind})`);
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-delegation-'));
    onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }));
    const logPath = path.join(folder, 'effects.log');
    const job = JSON.stringify({ storeKind, storeFolder: folder, logPath, steps: STEPS });

    let kills = 0;
    let ended: Ended | undefined;
    while (ended === undefined) {
      const child = fork(workerFile, [job], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
      const gone = once(child, 'close');
      child.on('message', (message) => {
        if (message !== 'working') ended = message as Ended;
        else if (kills < KILLS) setTimeout(() => child.kill('SIGKILL'), random.below(120));
      });
      const [code, signal] = (await gone) as [number | null, string | null];
      if (signal === 'SIGKILL') kills += 1;
      else expect(code).toBe(0);
    }

    const { result } = ended;
    expect(result).toMatchObject({ finishReason: 'stop', text: 'All done.' });
    expect(result.usage).toMatchObject({
      modelCalls: STEPS * CALLS_A_STEP + 1,
      delegated: { runs: 2 * STEPS, modelCalls: STEPS * (CALLS_A_STEP - 1) },
    });
    const runs = timesRun(logPath);
    for (const [call, count] of runs) if (!call.startsWith('look ')) expect(count, call).toBe(1);
    // One run of a call a call: a sub-agent that started over would have made others.
    for (const [name, most] of Object.entries({ look: 2, charge: 1, mail: 1 }))
      expect([...runs.keys()].filter((call) => call.startsWith(`${name} `)).length).toBeLessThanOrEqual(
        most * STEPS,
      );
    const store = openStore({ kind: storeKind, folder });
    expect((await store.checkpoints.list()).map(({ sessionId }) => sessionId)).toEqual(['order-7']);
    expect(await store.approvals.list()).toEqual([]);
    await store.close();
    // The rig itself: it killed where it hurts.
    console.log(`delegation (${storeKind}): ${kills} kills, ${runs.size} calls`);
    expect(kills).toBeGreaterThan(KILLS / 4);
  },
);

/** By tool and idempotency key. */
function timesRun(logPath: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const line of fs.readFileSync(logPath, 'utf8').trim().split('\n'))
    counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}
