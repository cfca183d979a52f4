/** What `exportStore` wrote, into a store: each record as a copy brings it, so an import can be continued and overwrites nothing. */
import {
  assertNever,
  resolvePorts,
  type AgentStore,
  type Checkpoint,
  type CheckpointHistoryEntry,
  type Ports,
} from '@lousho/contract';
import { copyApproval, copySession } from './copy-records.ts';
import { copyRun, type CopyOutcome } from './copy-run.ts';
import { CopyTally, type CopiedRecord, type CopyResult } from './copy-tally.ts';
import type { ExportCounts } from './export-lines.ts';
import {
  countRecord,
  noRecords,
  readRecords,
  type ExportedRecord,
  type ExportText,
} from './export-records.ts';
import { leftWithOwner } from './left-with-owner.ts';
import { invalidStore, requireStore } from './require-store.ts';

export interface ImportProgress {
  readonly record: CopiedRecord;
  readonly id: string;
  readonly outcome: CopyOutcome['kind'];
  /** Records so far, this one included. */
  readonly done: number;
}
export interface ImportOptions {
  /** Called after each record. What it throws ends the import. */
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
  /** Ends the import after the record at hand. */
  readonly signal?: AbortSignal | undefined;
  /** `ids` and `clock`, for tests. */
  readonly ports?: Partial<Ports> | undefined;
}
/** What an export holds. */
export interface ExportSummary extends ExportCounts {
  /** All of them: runs, approvals and sessions. */
  readonly records: number;
}

/**
 * Stores what is in the text, record by record, with the rules of `copyStore`: what is there and equal is skipped, what differs or executes
 * is left and named, each record is read back. An import that was aborted or whose process died is continued by calling again.
 * @throws LOUSHO_EXPORT_DAMAGED, LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_CONFIG_INVALID (no export, no store, or one that lacks a part),
 * LOUSHO_STORE_*, the reason of the signal; the records before are stored then
 */
export async function importStore(
  text: ExportText,
  to: AgentStore,
  options: ImportOptions = {},
): Promise<CopyResult> {
  requireStore('to', to);
  const { onProgress, signal } = options;
  const { clock, ids } = resolvePorts(options.ports);
  const deps = { to, clock, owner: `import-${ids.random()}` };
  const tally = new CopyTally();
  let done = 0;
  for await (const exported of readRecords(text)) {
    signal?.throwIfAborted();
    const { record, id } = exported;
    const outcome = leftWithOwner(record, id, tally.left) ?? (await importRecord(exported, deps));
    tally.add(record, id, outcome);
    done += 1;
    onProgress?.({ record, id, outcome: outcome.kind, done });
  }
  return tally.result();
}

/** Reads all of it and stores nothing. @throws what `importStore` throws for the text */
export async function checkExport(text: ExportText): Promise<ExportSummary> {
  const counts = noRecords();
  for await (const exported of readRecords(text)) countRecord(counts, exported);
  return { ...counts, records: counts.runs + counts.approvals + counts.sessions };
}

interface ImportDeps {
  readonly to: AgentStore;
  readonly owner: string;
  readonly clock: Ports['clock'];
}

/** Each record by itself is a store to copy from. */
async function importRecord(
  exported: ExportedRecord,
  { to, owner, clock }: ImportDeps,
): Promise<CopyOutcome> {
  const claims = to.checkpoints?.claims;
  const { id } = exported;
  switch (exported.record) {
    case 'checkpoint': {
      const { saves } = exported;
      const from = {
        save: readOnly,
        delete: readOnly,
        load: async () => saves.at(-1),
        history: async () => saves.map(historyEntry).reverse(),
      };
      const isFinished = saves.at(-1)?.status === 'finished';
      const target = { to: part('checkpoints', to.checkpoints), conversations: to.sessions };
      return copyRun(id, isFinished, { from, ...target, owner, clock });
    }
    case 'approval': {
      const load = async () => exported.approval;
      const from = { save: readOnly, delete: readOnly, list: readOnly, load };
      return copyApproval(id, { from, to: part('approvals', to.approvals), claims, clock });
    }
    case 'session': {
      const load = async () => exported.session;
      const from = { saveIfRevision: readOnly, delete: readOnly, load };
      return copySession(id, { from, to: part('sessions', to.sessions), claims, clock });
    }
    default:
      return assertNever(exported);
  }
}

function historyEntry(checkpoint: Checkpoint): CheckpointHistoryEntry {
  const { stepIndex: step, savedAt, status } = checkpoint;
  return { step, savedAt, status, checkpoint };
}

async function readOnly(): Promise<never> {
  throw new Error('Invariant: an import writes into what it reads.');
}

function part<Part>(name: string, given: Part | undefined): Part {
  if (given === undefined) throw invalidStore('to', `a store that has ${name}, as the export has`);
  return given;
}
