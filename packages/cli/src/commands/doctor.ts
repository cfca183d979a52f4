/** `lousho doctor`: whether everything is as it has to be. Exit code 1 when something is wrong. */
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { checkPackages, checkRuntime } from '../doctor/environment.ts';
import { checkStore } from '../doctor/store.ts';
import type { Finding } from '../doctor/finding.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';
import { bad, dim, good, strong, warn, type Line, type Piece } from '../terminal/styled-line.ts';
import { count } from '../terminal/words.ts';

interface DoctorOptions {
  readonly deep?: boolean | undefined;
}

export function registerDoctor(cli: Cli): void {
  cli.program
    .command('doctor')
    .description('whether runtime, packages and store are as they have to be')
    .option('--deep', 'read everything that is stored, also what is over')
    .action(cli.action((context, options: DoctorOptions) => runDoctor(context, options)));
}

async function runDoctor(context: Context, { deep = false }: DoctorOptions): Promise<ExitCode> {
  const { out } = context;
  const findings = [
    ...checkRuntime(process.versions.node),
    ...checkPackages(context.cwd),
    ...(await checkStore(context, { deep })),
  ];
  const wrong = findings.filter(({ level }) => level === 'wrong').length;
  if (out.json) await out.document({ healthy: wrong === 0, findings });
  else await out.lines(findings.flatMap(linesOf));
  out.note(wrong === 0 ? 'Nothing is wrong.' : `${count(wrong, 'thing is', 'things are')} wrong.`);
  return wrong === 0 ? exitCodes.ok : exitCodes.failure;
}

function linesOf({ level, topic, message, hint }: Finding): Line[] {
  const line: Line = [marks[level], ' ', strong(topic.padEnd(10)), ' ', message];
  return hint === undefined ? [line] : [line, dim(`             ${hint}`)];
}

const marks: { readonly [L in Finding['level']]: Piece } = {
  fine: good('✓'),
  note: warn('!'),
  wrong: bad('✗'),
};
