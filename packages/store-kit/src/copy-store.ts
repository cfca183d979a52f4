/** Everything of one store into another: runs with their history, approvals and conversations, one record at a time. */
import { resolvePorts, type AgentStore, type Ports } from '@lousho/contract';
import { copyApproval, copySession } from './copy-records.ts';
import { copyRun, type CopyOutcome } from './copy-run.ts';
import { CopyTally, type CopiedRecord, type CopyResult } from './copy-tally.ts';
import { leftWithOwner } from './left-with-owner.ts';
import { approvalsOf, runsOf, sessionsOf } from './list-records.ts';
import { invalidStore, requireStore } from './require-store.ts';

export interface CopyProgress {
  readonly record: CopiedRecord;
  readonly id: string;
  /** `gone`: deleted in the source since the copy began. */
  readonly outcome: CopyOutcome['kind'];
  /** Records that were looked at so far, this one included, of `total`. */
  readonly done: number;
  readonly total: number;
}
export interface CopyOptions {
  /** Called after each record. What it throws ends the copy. */
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined;
  /** Ends the copy after the record that is being copied. */
  readonly signal?: AbortSignal | undefined;
  /** `ids` and `clock`, for tests. */
  readonly ports?: Partial<Ports> | undefined;
}
/**
 * Copies what `from` has into `to`. What is there and equal is skipped, so a copy that was aborted, or whose process died, is continued by
 * calling again. Each record is read back and compared. Nothing in the target is overwritten or deleted, and no run is taken that somebody
 * holds a lease on: those are in `left`, with the reason.
 * @throws LOUSHO_CONFIG_INVALID (what is no store, cannot be listed, or lacks a part), LOUSHO_STORE_*, the reason of the signal
 */
export async function copyStore(
  from: AgentStore,
  to: AgentStore,
  options: CopyOptions = {},
): Promise<CopyResult> {
  requireStore('from', from);
  requireStore('to', to);
  const steps = await planCopy(from, to, resolvePorts(options.ports));
  const tally = new CopyTally();
  for (const [index, { record, id, copy }] of steps.entries()) {
    options.signal?.throwIfAborted();
    const outcome = leftWithOwner(record, id, tally.left) ?? (await copy());
    tally.add(record, id, outcome);
    options.onProgress?.({ record, id, outcome: outcome.kind, done: index + 1, total: steps.length });
  }
  return tally.result();
}

interface CopyStep {
  readonly record: CopiedRecord;
  readonly id: string;
  readonly copy: () => Promise<CopyOutcome>;
}

/** Runs first: an approval or a conversation without its run is worse than a run without them, which the next copy brings. */
async function planCopy(from: AgentStore, to: AgentStore, ports: Ports): Promise<readonly CopyStep[]> {
  if (from === to) throw invalidStore('to', 'another store than the one to copy from');
  const { clock } = ports;
  const claims = to.checkpoints?.claims;
  const owner = `copy-${ports.ids.random()}`;
  const steps: CopyStep[] = [];
  const runs = await runsOf(from.checkpoints);
  for (const { id, status } of runs) {
    const deps = {
      ...bothParts('checkpoints', from.checkpoints, to.checkpoints),
      conversations: to.sessions,
      owner,
      clock,
    };
    steps.push({ record: 'checkpoint', id, copy: () => copyRun(id, status === 'finished', deps) });
  }
  for (const id of await approvalsOf(from.approvals, runs)) {
    const deps = { ...bothParts('approvals', from.approvals, to.approvals), claims, clock };
    steps.push({ record: 'approval', id, copy: () => copyApproval(id, deps) });
  }
  for (const id of await sessionsOf(from.sessions)) {
    const deps = { ...bothParts('sessions', from.sessions, to.sessions), claims, clock };
    steps.push({ record: 'session', id, copy: () => copySession(id, deps) });
  }
  return steps;
}

function bothParts<Part>(name: string, from: Part | undefined, to: Part | undefined) {
  if (from === undefined || to === undefined)
    throw invalidStore('to', `a store that has ${name}, as the other has`);
  return { from, to };
}
