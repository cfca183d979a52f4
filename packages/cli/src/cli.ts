/** What a command is made with: where it registers, how its options are read. */
import { InvalidArgumentError, type Command } from 'commander';
import type { Context } from './context.ts';
import type { ExitCode } from './exit-codes.ts';
import { parseDuration } from './terminal/words.ts';

/** What a command does: nothing to return is success. */
export type RunCommand<Args extends unknown[]> = (
  context: Context,
  ...args: Args
) => Promise<ExitCode | void>;

/** What commands register with. */
export interface Cli {
  readonly program: Command;
  /** The command that others stand below, as `runs` of `runs list`; made when it is first asked for. */
  group(name: string, description: string): Command;
  /** For `.action(...)`: arguments in their order, then the command's own options. */
  action<Args extends unknown[]>(run: RunCommand<Args>): (...given: [...Args, Command]) => Promise<void>;
}

/** For `.option(..., wholeNumber(1))`. */
export function wholeNumber(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value;
    throw new InvalidArgumentError(`It must be a whole number, ${least} or more.`);
  };
}

/** For options such as `--older-than 30d`; gives milliseconds. */
export function durationMs(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError('It must be a time such as 90s, 15m, 12h, 30d or 2w.');
}
