/** `lousho diff <a> <b>` and `lousho eval --drift <a> <b>`: where two runs part, and in what. 6 when they drift. */
import type { TrajectoryComparison, TrajectoryDrift, TrajectoryStep } from '@lousho/core';
import { CliError } from '../cli-error.ts';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';
import { accent, bad, dim, good, strong, warn, type Line } from '../terminal/styled-line.ts';
import { readTrajectory } from '../trajectory-reference.ts';

const references =
  'Each is the id of a run or session, or a .json file with a fixture, a checkpoint or messages.';

export function registerDiff(cli: Cli): void {
  cli.program
    .command('diff <a> <b>')
    .description('where two runs part, step by step')
    .addHelpText('after', references)
    .action(cli.action((context, a: string, b: string) => diff(context, a, b)));
}

export function registerEval(cli: Cli): void {
  cli.program
    .command('eval <committed> <current>')
    .description('whether a run drifts from another one, for CI')
    .addHelpText('after', references)
    .option('--drift', 'compare tools, arguments, number of steps and end')
    .action(
      cli.action((context, committed: string, current: string, options: { readonly drift?: boolean }) =>
        evaluate(context, committed, current, options),
      ),
    );
}

async function diff(context: Context, a: string, b: string): Promise<ExitCode> {
  const comparison = await compare(context, a, b);
  const { out } = context;
  if (out.json) await out.document(comparison);
  else await out.lines([...stepLines(comparison), ...driftLines(comparison.drift)]);
  return exitCodeOfDrift(comparison.drift);
}

/** The machine output is `drift` of `compareTrajectories`, and nothing around it. */
async function evaluate(
  context: Context,
  committed: string,
  current: string,
  { drift: isDrift = false }: { readonly drift?: boolean },
): Promise<ExitCode> {
  if (!isDrift)
    throw new CliError('LOUSHO_CLI_USAGE', 'What is to be evaluated?', {
      hint: 'Add --drift: there is no other way yet.',
    });
  const { drift } = await compare(context, committed, current);
  const { out } = context;
  if (out.json) await out.document(drift);
  else await out.lines(driftLines(drift));
  return exitCodeOfDrift(drift);
}

async function compare(context: Context, a: string, b: string): Promise<TrajectoryComparison> {
  const [first, second] = [await readTrajectory(context, a), await readTrajectory(context, b)];
  const { compareTrajectories } = await import('@lousho/core');
  return compareTrajectories(first, second);
}

function exitCodeOfDrift(drift: readonly TrajectoryDrift[]): ExitCode {
  return drift.length === 0 ? exitCodes.ok : exitCodes.drift;
}

/* ── For people ── */

function driftLines(drift: readonly TrajectoryDrift[]): readonly Line[] {
  if (drift.length === 0) return [[good('✓ '), 'no drift: the same tools, arguments, steps and end']];
  return drift.map(({ field, committed, current }) => [
    bad('✗ '),
    strong(field),
    '  ',
    String(committed),
    dim('  →  '),
    String(current),
  ]);
}

/** What both have in common is told once; from where they part, both. */
function stepLines({ a, b, divergedAt }: TrajectoryComparison): readonly Line[] {
  const same = divergedAt === undefined ? a.length : divergedAt - 1;
  const lines: Line[] = a
    .slice(0, same)
    .flatMap((step, index) => [[dim(`= step ${index + 1}  `), ...shown(step)]]);
  for (let index = same; index < Math.max(a.length, b.length); index += 1) {
    lines.push([warn(`≠ step ${index + 1}`)]);
    lines.push([accent('  a  '), ...shown(a[index])], [accent('  b  '), ...shown(b[index])]);
  }
  return lines;
}

function shown(step: TrajectoryStep | undefined): string[] {
  if (step === undefined) return ['(no such step)'];
  const calls = step.toolCalls.map(({ toolName, args, result, kind }) => {
    const came = result === undefined ? 'no result' : JSON.stringify(result);
    return `${toolName}(${JSON.stringify(args)}) → ${kind === undefined ? '' : `${kind}: `}${came}`;
  });
  return [[step.text, ...calls].filter((part) => part !== '').join('  ')];
}
