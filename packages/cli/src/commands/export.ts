/** `lousho export`: everything of a store as lines of JSON, or one run as a fixture for tests. */
import type { AgentStore } from '@lousho/contract';
import { CliError } from '../cli-error.ts';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { progressLine } from '../copy-report.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';
import { outFile, type OutFile } from '../out-file.ts';
import { bad, dim, good } from '../terminal/styled-line.ts';
import { count } from '../terminal/words.ts';
import { fixtureFrom } from '../trajectory-reference.ts';

interface ExportCommandOptions {
  readonly out?: string;
  readonly fixture?: string;
}

export function registerExport(cli: Cli): void {
  cli.program
    .command('export')
    .description('everything of the store as lines of JSON, for lousho import; in clear')
    .option('--out <file>', 'into this file, which is there only when it is whole (default: stdout)')
    .option('--fixture <id>', 'one run instead, as a fixture for tests')
    .action(cli.action((context, options: ExportCommandOptions) => exportAll(context, options)));
}

async function exportAll(context: Context, { out, fixture }: ExportCommandOptions): Promise<ExitCode> {
  if (fixture !== undefined) return exportFixture(context, fixture, out);
  if (out === undefined && context.out.isTerminal)
    throw new CliError('LOUSHO_CLI_USAGE', 'An export is for a file or a pipe.', {
      hint: 'Add --out <file>.',
    });
  return exportStoreTo(context, await outFile(context, out));
}

async function exportFixture(context: Context, id: string, out: string | undefined): Promise<ExitCode> {
  const fixture = await fixtureFrom(context, id);
  if (out === undefined) await context.out.document(fixture);
  else await (await outFile(context, out)).write([`${JSON.stringify(fixture, undefined, 2)}\n`]);
  context.out.note([
    good('✓ '),
    `${id}: ${count(fixture.script.length, 'response')} as a script for mockModel.`,
  ]);
  return exitCodes.ok;
}

/** 1 when something of the store could not be read; the rest is in the export. */
async function exportStoreTo(context: Context, target: OutFile): Promise<ExitCode> {
  const { out } = context;
  const store: AgentStore = await context.store();
  const { exportStore } = await import('@lousho/store-kit');
  const signal = context.takeInterrupts();
  let [exported, unreadable] = [0, 0];
  const lines = exportStore(store, {
    signal,
    onProgress({ record, id, outcome, error, done, total }) {
      out.progress(progressLine('exported', done, total, id));
      if (outcome === 'exported') exported += 1;
      if (outcome !== 'unreadable') return;
      unreadable += 1;
      out.progress(undefined);
      out.warning([bad('✗ '), `${record} ${id}`, dim(`  ${error?.message ?? 'unreadable'}`)]);
    },
  });
  try {
    await target.write(lines);
  } catch (error) {
    out.progress(undefined);
    if (!signal.aborted) throw error;
    out.note('Stopped. An export is whole or not there: begin again.');
    return exitCodes.interrupted;
  }
  out.progress(undefined);
  out.note([good('✓ '), `${count(exported, 'record')} exported.`]);
  if (unreadable > 0) out.warning(`${count(unreadable, 'record')} could not be read and are not in it.`);
  return unreadable > 0 ? exitCodes.failure : exitCodes.ok;
}
