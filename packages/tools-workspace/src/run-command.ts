/** Runs one shell command to its end, its time-out or its abort. Nothing of it is left when this returns. */
import type { Readable } from 'node:stream';
import type { Clock } from '@lousho/contract';
import { keepEnds, type KeptOutput } from './kept-output.ts';
import { endGroup, startCommand, type CommandProcess } from './process-group-ports.ts';

export interface CommandRequest {
  readonly command: string;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}
export interface CommandOutcome {
  /** `null` when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal?: string;
  /** After so many milliseconds it was ended. */
  readonly timedOutAfterMs?: number;
  /** In the order in which it came, of both outputs. */
  readonly output: string;
  /** Left out of the middle of the output. */
  readonly omittedBytes?: number;
}

/** Time to put things in order between the friendly and the final signal. */
const GRACE_MS = 2_000;
/** A process that left the group may hold the output open for ever; what was written is here long before. */
const DRAIN_MS = 500;

/** @throws the reason of `signal`, after the command was ended. */
export async function runCommand(request: CommandRequest): Promise<CommandOutcome> {
  const { clock, signal, timeoutMs } = request;
  signal.throwIfAborted();
  const child = startCommand(request.command, request.cwd, request.env);
  const kept = keepEnds(request.maxOutputBytes);
  const cancels: (() => void)[] = [];
  let hasTimedOut = false;
  const end = (): void => {
    endGroup(child, 'SIGTERM');
    cancels.push(clock.setTimer(() => endGroup(child, 'SIGKILL'), GRACE_MS));
  };
  cancels.push(
    clock.setTimer(() => {
      hasTimedOut = true;
      end();
    }, timeoutMs),
  );
  signal.addEventListener('abort', end);
  try {
    const ending = await endOf(child, kept, clock);
    signal.throwIfAborted();
    return { ...ending, ...(hasTimedOut ? { timedOutAfterMs: timeoutMs } : undefined), ...kept.result() };
  } finally {
    signal.removeEventListener('abort', end);
    for (const cancel of cancels) cancel();
  }
}

function endOf(
  child: CommandProcess,
  kept: KeptOutput,
  clock: Clock,
): Promise<Pick<CommandOutcome, 'exitCode' | 'signal'>> {
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => kept.add(bytes));
    child.once('error', reject);
    child.once('exit', (exitCode, signal) => {
      // What it left running in the background ends with it.
      endGroup(child, 'SIGKILL');
      const cancel = clock.setTimer(() => closeAll([child.stdout, child.stderr]), DRAIN_MS);
      child.once('close', () => {
        cancel();
        resolve({ exitCode, ...(signal === null ? undefined : { signal }) });
      });
    });
  });
}

function closeAll(streams: readonly Readable[]): void {
  for (const stream of streams) stream.destroy();
}
