/** `lousho copy <from> <to>`: everything of one store into another. Ctrl-C ends after the record at hand; the same command goes on. */
import fs from 'node:fs';
import { CliError } from '../cli-error.ts';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { progressLine, reportCopy } from '../copy-report.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';
import type { OpenedStore } from '../open-store.ts';
import { parseStoreSpec } from '../store-spec.ts';

export function registerCopy(cli: Cli): void {
  cli.program
    .command('copy <from> <to>')
    .description('everything of one store into another, which is created when it is not there')
    .action(cli.action((context, from: string, to: string) => copy(context, from, to)));
}

/** Stop the agents of both before: what executes is left, and what changes behind the copy is not in it. */
async function copy(context: Context, from: string, to: string): Promise<ExitCode> {
  const { out } = context;
  const source = await context.otherStore(from, { create: false });
  refuseSamePlace(context, source, to);
  const target = await context.otherStore(to, { create: true });
  const { copyStore } = await import('@lousho/store-kit');
  const signal = context.takeInterrupts();
  try {
    const result = await copyStore(source.store, target.store, {
      signal,
      onProgress: ({ done, total, id }) => out.progress(progressLine('copied', done, total, id)),
    });
    return await reportCopy(context, 'copied', result);
  } catch (error) {
    out.progress(undefined);
    if (!signal.aborted) throw error;
    out.note('Stopped. What was copied stays; the same command again copies the rest.');
    return exitCodes.interrupted;
  }
}

/** Nothing would be destroyed, but every run that is not over would look as if somebody executed it. */
function refuseSamePlace({ cwd }: Context, { place }: OpenedStore, to: string): void {
  const target = parseStoreSpec(to, cwd);
  if (place === undefined || place.kind !== target.kind || realPath(place.path) !== realPath(target.path))
    return;
  throw new CliError('LOUSHO_CLI_USAGE', `"${to}" is the store to copy from.`);
}

function realPath(place: string): string {
  return fs.existsSync(place) ? fs.realpathSync(place) : place;
}
