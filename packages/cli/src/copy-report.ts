/** How a copy or an import is told: its progress, its end, and what it left. */
import type { CopyLeft, CopyResult } from '@lousho/store-kit';
import type { Context } from './context.ts';
import { exitCodes, type ExitCode } from './exit-codes.ts';
import { bad, dim, good, type Line } from './terminal/styled-line.ts';
import { count, thousands } from './terminal/words.ts';

export function progressLine(verb: string, done: number, total: number, id: string): Line {
  const width = 24;
  const filled = total === 0 ? width : Math.floor((done / total) * width);
  const bar = '█'.repeat(filled) + '░'.repeat(width - filled);
  return [`${verb} `, bar, ` ${thousands(done)}/${thousands(total)} `, dim(id)];
}

/** 5 when all that is left executes now, 1 when something else is left. */
export async function reportCopy({ out }: Context, verb: string, result: CopyResult): Promise<ExitCode> {
  const { checkpoints, approvals, sessions, saves, left } = result;
  out.progress(undefined);
  if (out.json) await out.document(result);
  else {
    const copied = [
      count(checkpoints.copied, 'run'),
      count(saves, 'save'),
      count(approvals.copied, 'approval'),
      count(sessions.copied, 'session'),
    ];
    const equal = checkpoints.equal + approvals.equal + sessions.equal;
    await out.lines([`${verb} ${copied.join(', ')}${equal === 0 ? '' : `; ${thousands(equal)} were there`}`]);
  }
  if (left.length === 0) {
    out.note([good('✓ '), 'Everything is there, read back and compared.']);
    return exitCodes.ok;
  }
  for (const record of left) out.warning(leftLine(record));
  out.warning(
    `${count(left.length, 'record was', 'records were')} left. The same command again goes on from here.`,
  );
  return left.every(({ reason }) => busy.has(reason)) ? exitCodes.busy : exitCodes.failure;
}

const busy: ReadonlySet<CopyLeft['reason']> = new Set(['executing', 'executing-in-target', 'changed']);

function leftLine({ record, id, reason, error }: CopyLeft): Line {
  const why = error === undefined ? '' : `: ${error.message}`;
  return [bad('✗ '), `${record} ${id}`, dim(`  ${reason}${why}`)];
}
