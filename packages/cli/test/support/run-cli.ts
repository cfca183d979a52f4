/** `main` in this process, with streams that are looked at, a clock that is moved by hand and a Ctrl-C that is pressed by the test. */
import { PassThrough, Writable } from 'node:stream';
import { manualClock } from '@lousho/testing';
import { main } from '../../src/main.ts';
import type { Io } from '../../src/node-io.ts';

export interface CliResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunCliOptions {
  readonly cwd?: string;
  readonly clock?: Io['clock'];
  readonly env?: Io['env'];
  /** Makes stdin, stdout and stderr a terminal of so many columns. */
  readonly columns?: number;
  /** Given what presses Ctrl-C. */
  readonly onStart?: (pressCtrlC: () => void) => void;
}

export async function runCli(args: readonly string[], options: RunCliOptions = {}): Promise<CliResult> {
  const { columns, cwd = process.cwd(), env = {}, clock = manualClock() } = options;
  const isTTY = columns !== undefined;
  const [stdout, stderr] = [new Sink(), new Sink()];
  const stdin = Object.assign(new PassThrough(), { isTTY });
  const interrupts = new Set<() => void>();
  options.onStart?.(() => interrupts.forEach((callback) => callback()));
  const exitCode = await main(args, {
    ...{ env, cwd, clock, stdin },
    stdout: Object.assign(stdout, { isTTY, columns }),
    stderr: Object.assign(stderr, { isTTY, columns }),
    onInterrupt(callback) {
      interrupts.add(callback);
      return () => interrupts.delete(callback);
    },
    exit: (code) => {
      throw new Error(`the process ended with ${code}`);
    },
  });
  return { exitCode, stdout: stdout.text, stderr: stderr.text };
}

class Sink extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8');
    done();
  }
}
