/** `lousho leases list`: which process executes which run, and until when it may. */
import type { Cli } from '../cli.ts';
import { CliError } from '../cli-error.ts';
import type { Context } from '../context.ts';
import { heldLeases, holderName, type JudgedLease } from '../leases.ts';
import { dim, good, warn, type Piece } from '../terminal/styled-line.ts';
import type { Column } from '../terminal/table.ts';
import { ago, count } from '../terminal/words.ts';

export function registerLeasesList(cli: Cli): void {
  cli
    .group('leases', 'who executes which run')
    .command('list')
    .description('leases that are held, and by whom')
    .action(cli.action((context) => listLeases(context)));
}

async function listLeases(context: Context): Promise<void> {
  const { out, nowMs } = context;
  const leases = await heldLeases(await context.checkpoints(), nowMs);
  if (leases === undefined)
    throw new CliError('LOUSHO_CLI_UNSUPPORTED', 'The store does not tell who holds its leases.');
  if (out.json) return out.documentOf(leases);
  if (leases.length === 0) return out.note('Nobody executes anything.');
  await out.table(columns(nowMs), leases);
  const stale = leases.filter(({ state }) => state === 'stale').length;
  const note = stale === 0 ? '' : `, ${stale} stale: whoever asks for such a run gets it`;
  out.note(dim(`${count(leases.length, 'lease')}${note}`));
}

function columns(nowMs: number): readonly Column<JudgedLease>[] {
  return [
    { title: 'RUN', cell: ({ id }) => id },
    { title: 'STATE', cell: stateOf, minWidth: 5 },
    { title: 'HOLDER', cell: holderName, minWidth: 10 },
    { title: 'EXPIRES', cell: ({ expiresAtMs }) => dim(ago(expiresAtMs, nowMs)), minWidth: 8 },
    { title: 'FENCE', cell: ({ fence }) => String(fence), align: 'right', minWidth: 5 },
  ];
}

function stateOf({ state, isHolderGone }: JudgedLease): Piece {
  if (isHolderGone) return warn('stale: process gone');
  return state === 'held' ? good(state) : warn(state);
}
