/** A lead and its remote agent, two processes with a real connection, each killed with SIGKILL at moments that a seed chooses. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RunUsage } from '@lousho/contract';
import { expect, it, onTestFinished } from 'vitest';
import { seededRandom } from '../src/random.ts';
import { openStore, type StoreKind } from '../workers/open-store.mjs';

/** Of each of the two. */
const KILLS = 8;
/** Each gives a task: 3 responses of the remote, one call that anybody may make and one that a person must agree to. */
const STEPS = 6;

interface Result {
  readonly finishReason: string;
  readonly text: string;
  readonly usage: RunUsage;
}

it.each<StoreKind>(['sqlite', 'file'])(
  'starts no remote work over, runs what was approved once, counts every model call once (%s)',
  { timeout: 300_000 },
  async (storeKind) => {
    const random = seededRandom(`remote (${storeKind})`);
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-remote-'));
    onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }));
    const inFolder = (name: string): string => {
      fs.mkdirSync(path.join(folder, name), { recursive: true });
      return path.join(folder, name);
    };
    const logPath = path.join(folder, 'effects.log');
    const there = { storeKind, storeFolder: inFolder('remote'), logPath };
    const here = { storeKind, storeFolder: inFolder('lead'), steps: STEPS };

    const remote = new KilledAgain('remote-worker.mjs', (message) => isServing(message), random);
    const { port } = (await remote.start({ ...there, port: 0 })) as { readonly port: number };
    remote.keepAlive({ ...there, port });
    const lead = new KilledAgain('remote-lead-worker.mjs', (message) => message === 'working', random);
    const ended = lead.untilItEnds({ ...here, url: `http://127.0.0.1:${port}` });
    const { result } = (await ended) as { readonly result: Result };
    await remote.end();

    expect(result).toMatchObject({ finishReason: 'stop', text: 'All done.' });
    expect(result.usage).toMatchObject({
      modelCalls: STEPS * 4 + 1,
      delegated: { runs: STEPS, modelCalls: STEPS * 3 },
    });
    const runs = timesRun(logPath);
    // One run of a call a task: a remote that had begun anew would have made others.
    const made = (name: string) => [...runs.keys()].filter((call) => call.startsWith(`${name} `));
    expect(made('look')).toHaveLength(STEPS);
    // One that died between its mark and its first line is never tried again.
    expect(made('charge').length).toBeLessThanOrEqual(STEPS);
    for (const [call, count] of runs) if (call.startsWith('charge ')) expect(count, call).toBe(1);
    const store = openStore({ kind: storeKind, folder: there.storeFolder });
    expect(await store.sessions.list?.()).toHaveLength(STEPS);
    expect(await store.approvals.list()).toEqual([]);
    await store.close();
    // The rig itself: it killed where it hurts.
    console.log(`remote (${storeKind}): ${remote.kills} kills of the remote, ${lead.kills} of the lead`);
    expect(Math.min(remote.kills, lead.kills)).toBeGreaterThan(KILLS / 4);
  },
);

function isServing(message: unknown): boolean {
  return (message as { readonly type?: unknown }).type === 'serving';
}

/** A worker that is killed some time after it has said that it is at work, and started again. */
class KilledAgain {
  kills = 0;
  #child: ChildProcess | undefined;
  #isOver = false;
  #gone: Promise<unknown> = Promise.resolve();

  constructor(
    readonly file: string,
    readonly isAtWork: (message: unknown) => boolean,
    readonly random: ReturnType<typeof seededRandom>,
  ) {
    onTestFinished(() => this.end());
  }

  /** What it says when it is at work. */
  async start(job: object): Promise<unknown> {
    const child = this.#fork(job);
    return new Promise((resolve, reject) => {
      child.on('message', (message) => this.isAtWork(message) && resolve(message));
      child.once('exit', () => reject(new Error(`${this.file} is gone.`)));
    });
  }

  /** The one that was started, and each that comes after it. */
  keepAlive(job: object): void {
    const child = this.#child;
    this.#killLater(child);
    child?.once('exit', () => {
      if (this.#isOver) return;
      this.#fork(job);
      this.#child?.once('message', () => this.keepAlive(job));
    });
  }

  /** What it says at its end. */
  async untilItEnds(job: object): Promise<unknown> {
    for (;;) {
      let ended: unknown;
      const child = this.#fork(job);
      child.on('message', (message) => {
        if (this.isAtWork(message)) this.#killLater(child);
        else ended = message;
      });
      const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
      if (ended !== undefined) return ended;
      if (signal !== 'SIGKILL') throw new Error(`${this.file} ended with code ${code}.`);
    }
  }

  async end(): Promise<void> {
    this.#isOver = true;
    this.#child?.kill('SIGKILL');
    await this.#gone;
  }

  #fork(job: object): ChildProcess {
    const worker = fileURLToPath(new URL(`../workers/${this.file}`, import.meta.url));
    const child = fork(worker, [JSON.stringify(job)], { execArgv: [] });
    this.#child = child;
    this.#gone = once(child, 'close');
    return child;
  }

  #killLater(child: ChildProcess | undefined): void {
    if (this.kills >= KILLS) return;
    setTimeout(() => {
      if (!this.#isOver && child?.kill('SIGKILL') === true) this.kills += 1;
    }, this.random.below(250));
  }
}

/** By tool and idempotency key. */
function timesRun(logPath: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const line of fs.readFileSync(logPath, 'utf8').trim().split('\n'))
    counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}
