/** The records that an export holds, put together from its lines. Nothing of a text that is damaged further up gets through. */
import {
  assertNever,
  historyOf,
  parseApprovalRecord,
  parseCheckpoint,
  parseSessionRecord,
  type ApprovalRecord,
  type Checkpoint,
  type LogEvent,
  type SessionRecord,
} from '@lousho/contract';
import { damagedAt, readLines, type ExportCounts, type ReadLine } from './export-lines.ts';

/** Text in pieces of any length: a file stream, an array, a string in a list. */
export type ExportText = AsyncIterable<string> | Iterable<string>;

export type ExportedRecord =
  | { readonly record: 'checkpoint'; readonly id: string; readonly saves: readonly Checkpoint[] }
  | { readonly record: 'approval'; readonly id: string; readonly approval: ApprovalRecord }
  | { readonly record: 'session'; readonly id: string; readonly session: SessionRecord };

/** Whole records, checked, in their order. @throws what `importStore` throws for the text */
export async function* readRecords(text: ExportText): AsyncGenerator<ExportedRecord, void> {
  const counts = noRecords();
  const lines = readLines(text);
  let last: ReadLine | undefined;
  for await (const read of lines) {
    if (last !== undefined && 'end' in last.line) throw damagedAt(read.number, 'it stands behind the end');
    last = read;
    const { number, line } = read;
    if ('lousho' in line) continue;
    if ('end' in line) {
      requireAll(number, counts, line.end);
      continue;
    }
    const exported = 'run' in line ? await readRun(read, line, lines) : recordOf(read);
    countRecord(counts, exported);
    yield exported;
  }
  if (last === undefined || !('end' in last.line))
    throw damagedAt((last?.number ?? 0) + 1, 'the text ends before its last line');
}

async function readRun(
  { number }: ReadLine,
  { run: id, saves }: { readonly run: string; readonly saves: number },
  lines: AsyncGenerator<ReadLine, void>,
): Promise<ExportedRecord> {
  const events: LogEvent[] = [];
  while (events.length < saves) {
    const next = await lines.next();
    if (next.done === true) throw damagedAt(number + events.length + 1, 'the text ends before its last line');
    const { line } = next.value;
    if (!('save' in line)) throw damagedAt(next.value.number, `a save of "${id}" belongs there`);
    events.push(line.save);
  }
  return { record: 'checkpoint', id, saves: statesOf(id, events, number) };
}

function statesOf(id: string, events: readonly LogEvent[], line: number): readonly Checkpoint[] {
  const parse = (state: unknown): Checkpoint => parseCheckpoint(state, id);
  return historyOf(events, events.length, parse, () => {
    throw damagedAt(line, 'it stands on a log that no export holds');
  })
    .map(({ checkpoint }) => checkpoint)
    .reverse();
}

function recordOf({ number, line }: ReadLine): ExportedRecord {
  if ('approval' in line) {
    const { id } = line.approval;
    return { record: 'approval', id, approval: parseApprovalRecord(line.approval, id) };
  }
  if ('session' in line) {
    const { id } = line.session;
    return { record: 'session', id, session: parseSessionRecord(line.session, id) };
  }
  throw damagedAt(number, 'it is of no kind that this release knows');
}

/** How many of each there were so far. */
export type Counts = { -readonly [Field in keyof ExportCounts]: number };

export function noRecords(): Counts {
  return { runs: 0, saves: 0, approvals: 0, sessions: 0 };
}

export function countRecord(counts: Counts, exported: ExportedRecord): void {
  switch (exported.record) {
    case 'checkpoint':
      counts.runs += 1;
      counts.saves += exported.saves.length;
      return;
    case 'approval':
      counts.approvals += 1;
      return;
    case 'session':
      counts.sessions += 1;
      return;
    default:
      assertNever(exported);
  }
}

function requireAll(line: number, read: ExportCounts, said: ExportCounts): void {
  for (const field of ['runs', 'saves', 'approvals', 'sessions'] as const)
    if (read[field] !== said[field])
      throw damagedAt(line, `it says ${said[field]} ${field}, and ${read[field]} stand before it`);
}
