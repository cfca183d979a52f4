/** `lousho import <file>`: what `lousho export` wrote, into a store. Ctrl-C ends after the record at hand; the same command goes on. */
import fs from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { CliError } from '../cli-error.ts';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { progressLine, reportCopy } from '../copy-report.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';

export function registerImport(cli: Cli): void {
  cli.program
    .command('import <file>')
    .description('what lousho export wrote, into the store, which is created when it is not there')
    .action(cli.action((context, file: string) => importFile(context, file)));
}

/** All of it is read and checked before anything is stored; from stdin (`-`) it is checked as it comes. */
async function importFile(context: Context, name: string): Promise<ExitCode> {
  const { out } = context;
  const { checkExport, importStore } = await import('@lousho/store-kit');
  const text = textOf(context, name);
  const total = name === '-' ? undefined : (await checkExport(text())).records;
  const { store } = await context.openedStore({ create: true });
  const signal = context.takeInterrupts();
  try {
    const result = await importStore(text(), store, {
      signal,
      onProgress: ({ done, id }) => out.progress(progressLine('imported', done, total ?? done, id)),
    });
    return await reportCopy(context, 'imported', result);
  } catch (error) {
    out.progress(undefined);
    if (!signal.aborted) throw error;
    out.note('Stopped. What was imported stays; the same command again imports the rest.');
    return exitCodes.interrupted;
  }
}

function textOf({ cwd, io }: Context, name: string): () => AsyncIterable<string> {
  if (name === '-') return () => utf8(io.stdin);
  const file = path.resolve(cwd, name);
  if (!fs.existsSync(file)) throw new CliError('LOUSHO_CLI_USAGE', `There is no file "${name}".`);
  return () => utf8(fs.createReadStream(file));
}

async function* utf8(stream: Readable): AsyncGenerator<string, void> {
  stream.setEncoding('utf8');
  for await (const piece of stream) yield String(piece);
}
