/** The process as `main` sees it: its streams, its folder, Ctrl-C. Tests give one of their own. */
import type { Readable, Writable } from 'node:stream';
import { platformClock, type Clock } from '@lousho/contract';
import type { TextStream } from './terminal/output.ts';

export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined };
  readonly stdout: OutStream;
  readonly stderr: OutStream;
  readonly env: { readonly [name: string]: string | undefined };
  readonly cwd: string;
  readonly clock: Clock;
  /** Calls back at each Ctrl-C. Returns what ends that. */
  onInterrupt(callback: () => void): () => void;
  /** Ends the process at once. */
  exit(code: number): void;
}
export type OutStream = Writable & {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
};

export function nodeIo(): Io & { flush(): Promise<void> } {
  const { stdin, stdout, stderr, env } = process;
  return {
    ...{ stdin, stdout, stderr, env },
    cwd: process.cwd(),
    clock: platformClock,
    onInterrupt(callback) {
      const signals = ['SIGINT', 'SIGTERM'] as const;
      for (const signal of signals) process.on(signal, callback);
      return () => {
        for (const signal of signals) process.off(signal, callback);
      };
    },
    exit: (code) => process.exit(code),
    async flush() {
      for (const stream of [stdout, stderr])
        await new Promise<void>((resolve) => stream.write('', () => resolve()));
    },
  };
}

/** What a terminal that does not tell its size most likely has. */
const USUAL_COLUMNS = 80;

/** `noColor` is `--no-color`; the environment has its say as everywhere: `NO_COLOR`, `FORCE_COLOR`, `TERM=dumb`. */
export function textStream(stream: OutStream, env: Io['env'], noColor: boolean): TextStream {
  const isTerminal = stream.isTTY === true;
  return {
    stream,
    isTerminal,
    colors: !noColor && hasColors(isTerminal, env),
    columns: () => (isTerminal ? columnsOf(stream) : Infinity),
  };
}

/** A terminal that does not know how wide it is says 0. */
function columnsOf({ columns = 0 }: OutStream): number {
  return columns > 0 ? columns : USUAL_COLUMNS;
}

function hasColors(isTerminal: boolean, { NO_COLOR, FORCE_COLOR, TERM }: Io['env']): boolean {
  if (NO_COLOR !== undefined && NO_COLOR !== '') return false;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '') return FORCE_COLOR !== '0';
  return isTerminal && TERM !== 'dumb';
}
