/** One process that saves (`workers/save-worker.mjs`), perhaps under strace. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { StoreFault, StoreKind } from '../workers/open-store.mjs';

export interface SaveJob {
  readonly kind: StoreKind;
  readonly folder: string;
  readonly fault?: StoreFault;
  readonly logPath: string;
  readonly ids: readonly string[];
  /** How many it adds to each; `null`: as many as it can. */
  readonly steps: number | null;
  readonly staysIdle?: boolean;
}

const workerFile = fileURLToPath(new URL('../workers/save-worker.mjs', import.meta.url));
export class SaveProcess {
  readonly #child: ChildProcess;
  /** Resolves when it is gone, with the signal that ended it. */
  readonly ended: Promise<NodeJS.Signals | null>;
  #errors = '';

  /** Inside a test. @param inject what strace does to its system calls, as it takes it behind `-e inject=` */
  constructor(job: SaveJob, inject?: string) {
    // No options of the process that runs the tests.
    const env = { ...process.env };
    delete env['NODE_OPTIONS'];
    const [program = '', ...args] = inject === undefined ? command(job) : straced(job, inject);
    // As the leader of a group: to kill strace alone would let the process go on without it.
    this.#child = spawn(program, args, { env, detached: true, stdio: ['pipe', 'ignore', 'pipe'] });
    onTestFinished(() => killGroup(this.#child));
    this.#child.stderr?.on('data', (data: Buffer) => (this.#errors += data.toString()));
    this.ended = once(this.#child, 'close').then(([code, signal]) => {
      if (code !== 0 && code !== null) throw new Error(`The process ended with ${code}: ${this.#errors}`);
      return signal as NodeJS.Signals | null;
    });
    // Whoever kills it may not ask how it ended.
    this.ended.catch(() => undefined);
  }

  async kill(): Promise<void> {
    killGroup(this.#child);
    await this.ended;
  }
}

function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL');
}

/**
 * To be run by strace, which counts the calls of each thread by itself: with one thread in the pool, and the same calls in it each time,
 * however slow they are.
 */
export function countableCommand(job: SaveJob): readonly string[] {
  return ['env', 'UV_THREADPOOL_SIZE=1', ...command({ ...job, measuresNoCalls: true })];
}

function command(job: SaveJob & { readonly measuresNoCalls?: boolean }): readonly string[] {
  return [process.execPath, workerFile, JSON.stringify(job)];
}

function straced(job: SaveJob, inject: string): readonly string[] {
  const calls = inject.slice(0, inject.indexOf(':'));
  // Without --seccomp-bpf: strace 6.1 miscounts the calls with it.
  const options = ['-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${inject}`];
  return ['strace', ...options, ...countableCommand(job)];
}
