/** Everything of one store as text: runs with their history, approvals and conversations, one record at a time. */
import { frozenCopy, nextEvent, type AgentStore, type Checkpoint, type StoredError } from '@lousho/contract';
import type { CopiedRecord } from './copy-tally.ts';
import { EXPORT_FORMAT, LineWriter, type ExportLine } from './export-lines.ts';
import { noRecords } from './export-records.ts';
import { approvalsOf, runsOf, sessionsOf } from './list-records.ts';
import { readRecord } from './read-record.ts';
import { requireStore } from './require-store.ts';
import { savesOf } from './saves-of.ts';

export interface ExportProgress {
  readonly record: CopiedRecord;
  readonly id: string;
  /** `gone`: deleted since the export began. `unreadable`: not in the export; `error` says why. */
  readonly outcome: 'exported' | 'gone' | 'unreadable';
  readonly error?: StoredError;
  /** Records that were looked at so far, this one included, of `total`. */
  readonly done: number;
  readonly total: number;
}
export interface ExportOptions {
  /** Called after each record. What it throws ends the export. */
  readonly onProgress?: ((progress: ExportProgress) => void) | undefined;
  /** Ends the export after the record at hand. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Pieces of text, in their order; `importStore` reads them. Nothing is changed in the store and no lease is taken: a run that executes is
 * exported as it was saved last. A text that ends early is refused by whoever reads it.
 * @throws (while it is read) LOUSHO_CONFIG_INVALID (what is no store, or cannot be listed), LOUSHO_STORE_*, the reason of the signal
 */
export async function* exportStore(
  from: AgentStore,
  options: ExportOptions = {},
): AsyncGenerator<string, void> {
  requireStore('from', from);
  const { onProgress, signal } = options;
  const steps = await planExport(from);
  const writer = new LineWriter();
  const counts = noRecords();
  yield writer.line({ lousho: 'export', format: EXPORT_FORMAT });
  for (const [index, { record, id, read }] of steps.entries()) {
    signal?.throwIfAborted();
    const found = await read();
    const lines = 'error' in found ? [] : found.lines;
    for (const line of lines) {
      if ('run' in line) counts.runs += 1;
      else if ('save' in line) counts.saves += 1;
      else if ('approval' in line) counts.approvals += 1;
      else if ('session' in line) counts.sessions += 1;
      yield writer.line(line);
    }
    const error = 'error' in found ? { error: found.error } : undefined;
    const outcome = error !== undefined ? 'unreadable' : lines.length === 0 ? 'gone' : 'exported';
    onProgress?.({ record, id, outcome, ...error, done: index + 1, total: steps.length });
  }
  yield writer.line({ end: counts });
}

type Found = { readonly lines: readonly ExportLine[] } | { readonly error: StoredError };
interface ExportStep {
  readonly record: CopiedRecord;
  readonly id: string;
  readonly read: () => Promise<Found>;
}

/** In the order of a copy: what waits and what was said follow the runs that they belong to. */
async function planExport({ checkpoints, approvals, sessions }: AgentStore): Promise<readonly ExportStep[]> {
  const runs = await runsOf(checkpoints);
  const steps: ExportStep[] = [];
  if (checkpoints !== undefined)
    for (const { id } of runs)
      steps.push({
        record: 'checkpoint',
        id,
        read: async () => {
          const saves = await savesOf(checkpoints, id);
          return 'error' in saves ? saves : { lines: runLines(id, saves) };
        },
      });
  if (approvals !== undefined)
    for (const id of await approvalsOf(approvals, runs))
      steps.push({
        record: 'approval',
        id,
        read: () => recordLines(approvals.load.bind(approvals, id), (approval) => ({ approval })),
      });
  if (sessions !== undefined)
    for (const id of await sessionsOf(sessions))
      steps.push({
        record: 'session',
        id,
        read: () => recordLines(sessions.load.bind(sessions, id), (session) => ({ session })),
      });
  return steps;
}

function runLines(id: string, saves: readonly Checkpoint[]): readonly ExportLine[] {
  if (saves.length === 0) return [];
  let known: Checkpoint | undefined;
  const events = saves.map((save): ExportLine => {
    const checkpoint = frozenCopy(save);
    const event = nextEvent(known, checkpoint);
    known = checkpoint;
    return { save: event };
  });
  return [{ run: id, saves: saves.length }, ...events];
}

async function recordLines<Stored>(
  load: () => Promise<Stored | null | undefined>,
  lineOf: (record: Stored) => ExportLine,
): Promise<Found> {
  const found = await readRecord(load);
  if ('error' in found) return found;
  return { lines: found.record ? [lineOf(found.record)] : [] };
}
