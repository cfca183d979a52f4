/** Searches lines for a regular expression in a thread of its own: one that never ends must not hold the event loop, which renews leases. */
import { Worker } from 'node:worker_threads';
import type { Clock } from '@lousho/contract';
import { WorkspaceError } from './workspace-error.ts';

interface FoundLine {
  readonly line: number;
  readonly text: string;
}
export interface LineSearch {
  /** Rejects after the time for all of its files is over. One call at a time. */
  linesOf(text: string, limit: number): Promise<readonly FoundLine[]>;
  end(): Promise<void>;
}

const MAX_LINE_LENGTH = 500;

/** Runs in the thread. It gets a text and a limit, and answers with the lines that match. */
const searcher = `
  const { parentPort, workerData } = require('node:worker_threads');
  const expression = new RegExp(workerData.source, workerData.flags);
  parentPort.on('message', ({ text, limit }) => {
    const found = [];
    let line = 0;
    for (const each of text.split('\\n')) {
      line += 1;
      if (found.length >= limit) break;
      const whole = each.endsWith('\\r') ? each.slice(0, -1) : each;
      if (expression.test(whole)) found.push({ line, text: whole.slice(0, workerData.maxLineLength) });
    }
    parentPort.postMessage(found);
  });
`;

/** @throws WorkspaceError INVALID_PATTERN for what is no regular expression. */
export function startLineSearch(
  expression: { readonly pattern: string; readonly isLiteral: boolean; readonly ignoreCase: boolean },
  {
    clock,
    timeoutMs,
    signal,
  }: { readonly clock: Clock; readonly timeoutMs: number; readonly signal: AbortSignal },
): LineSearch {
  const { pattern, isLiteral, ignoreCase } = expression;
  const source = isLiteral ? pattern.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&') : pattern;
  const flags = ignoreCase ? 'iu' : 'u';
  requireExpression(pattern, source, flags);
  const stop = new AbortController();
  const cancelTimer = clock.setTimer(() => stop.abort(timedOut(pattern, timeoutMs)), timeoutMs);
  const over = AbortSignal.any([signal, stop.signal]);
  const worker = new Worker(searcher, {
    eval: true,
    workerData: { source, flags, maxLineLength: MAX_LINE_LENGTH },
  });
  // Out of memory, for example. Without a listener it would end the process.
  worker.on('error', (error) => stop.abort(error));
  return {
    linesOf: (text, limit) =>
      new Promise((resolve, reject) => {
        if (over.aborted) return reject(over.reason as Error);
        const finish = (act: () => void): void => {
          worker.off('message', onFound);
          over.removeEventListener('abort', onOver);
          act();
        };
        const onFound = (found: readonly FoundLine[]): void => finish(() => resolve(found));
        const onOver = (): void => finish(() => reject(over.reason as Error));
        worker.once('message', onFound);
        over.addEventListener('abort', onOver);
        worker.postMessage({ text, limit });
      }),
    async end() {
      cancelTimer();
      await worker.terminate();
    },
  };
}

function requireExpression(pattern: string, source: string, flags: string): void {
  try {
    new RegExp(source, flags);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const sentence = `${JSON.stringify(pattern.slice(0, 100))} is no regular expression (${why}). Mend it, or search with literal: true.`;
    throw new WorkspaceError('INVALID_PATTERN', pattern, sentence, { cause: error });
  }
}

function timedOut(pattern: string, timeoutMs: number): WorkspaceError {
  const sentence = `The search for ${JSON.stringify(pattern.slice(0, 100))} did not end within ${timeoutMs} ms. Search fewer files, or for a simpler pattern.`;
  return new WorkspaceError('TIMED_OUT', '.', sentence);
}
