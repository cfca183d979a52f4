/** Everything of one store into another: runs with their history, approvals and conversations, one record at a time. */
import {
  ConfigurationError,
  assertNever,
  classifyCheckpointId,
  resolvePorts,
  type AgentStore,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointHeader,
  type CheckpointHeaderEntry,
  type CheckpointListEntry,
  type CheckpointStatus,
  type CheckpointStore,
  type Ports,
  type SessionStore,
  type StoredError,
} from '@lousho/contract';
import { copyApproval, copySession } from './copy-records.ts';
import { copyRun, left, type CopyOutcome, type LeftReason } from './copy-run.ts';
import { requireStore } from './require-store.ts';

export type CopiedRecord = 'checkpoint' | 'approval' | 'session';

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
/** A record that was not copied, or not wholly. */
export interface CopyLeft {
  readonly record: CopiedRecord;
  readonly id: string;
  readonly reason: LeftReason;
  readonly error?: StoredError;
}
export interface CopyCount {
  readonly copied: number;
  /** Was there already. */
  readonly equal: number;
}
export interface CopyResult {
  readonly checkpoints: CopyCount;
  /** Saves that were written, for the history of the target. */
  readonly saves: number;
  readonly approvals: CopyCount;
  readonly sessions: CopyCount;
  /** Empty: the target has everything. */
  readonly left: readonly CopyLeft[];
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
  const tally = new Tally();
  for (const [index, { record, id, copy }] of steps.entries()) {
    options.signal?.throwIfAborted();
    const outcome = await copy(tally.left);
    tally.add(record, id, outcome);
    options.onProgress?.({ record, id, outcome: outcome.kind, done: index + 1, total: steps.length });
  }
  return tally.result();
}

interface CopyStep {
  readonly record: CopiedRecord;
  readonly id: string;
  readonly copy: (leftSoFar: readonly CopyLeft[]) => Promise<CopyOutcome>;
}

/** Runs first: an approval or a conversation without its run is worse than a run without them, which the next copy brings. */
async function planCopy(from: AgentStore, to: AgentStore, ports: Ports): Promise<readonly CopyStep[]> {
  if (from === to) throw invalid('to', 'another store than the one to copy from');
  const { clock } = ports;
  const claims = to.checkpoints?.claims;
  const owner = `copy-${ports.ids.random()}`;
  const steps: CopyStep[] = [];
  const runs = await runsOf(from.checkpoints);
  for (const { id, status } of runs) {
    const deps = { ...bothParts('checkpoints', from.checkpoints, to.checkpoints), owner, clock };
    steps.push({ record: 'checkpoint', id, copy: () => copyRun(id, status === 'finished', deps) });
  }
  for (const id of await approvalsOf(from.approvals, runs)) {
    const deps = { ...bothParts('approvals', from.approvals, to.approvals), claims, clock };
    steps.push({ record: 'approval', id, copy: () => copyApproval(id, deps) });
  }
  for (const id of await sessionsOf(from.sessions)) {
    const deps = { ...bothParts('sessions', from.sessions, to.sessions), claims, clock };
    steps.push({
      record: 'session',
      id,
      copy: async (leftSoFar) => (isExecuting(id, leftSoFar) ? left('executing') : copySession(id, deps)),
    });
  }
  return steps;
}

/** A turn of it is: it will soon be committed. */
function isExecuting(sessionId: string, leftSoFar: readonly CopyLeft[]): boolean {
  return leftSoFar.some(({ id, reason }) => {
    const kind = classifyCheckpointId(id);
    return reason === 'executing' && kind.kind === 'session' && kind.sessionId === sessionId;
  });
}

interface ListedRun {
  readonly id: string;
  readonly status: CheckpointStatus;
  /** Of the approvals that it waits for. */
  readonly approvalIds: readonly string[];
}

async function runsOf(checkpoints: CheckpointStore | undefined): Promise<readonly ListedRun[]> {
  if (checkpoints === undefined) return [];
  if (checkpoints.listHeaders !== undefined)
    return (await checkpoints.listHeaders()).map((entry) => listedRun(entry, entry.header));
  if (checkpoints.list === undefined) throw invalid('from', 'a store whose runs can be listed');
  return (await checkpoints.list()).map((entry) => listedRun(entry, entry.checkpoint));
}

function listedRun(
  { sessionId: id, status }: CheckpointListEntry | CheckpointHeaderEntry,
  run: Checkpoint | CheckpointHeader | null,
): ListedRun {
  return { id, status, approvalIds: run?.status === 'awaiting-approval' ? run.approvalIds : [] };
}

/** A list leaves out what cannot be read (A7). The runs know what they wait for, so that is asked for too, and its copy says what is wrong. */
async function approvalsOf(
  approvals: ApprovalStore | undefined,
  runs: readonly ListedRun[],
): Promise<readonly string[]> {
  if (approvals === undefined) return [];
  const listed = (await approvals.list()).map(({ id }) => id);
  return [...new Set([...listed, ...runs.flatMap(({ approvalIds }) => approvalIds)])];
}

async function sessionsOf(sessions: SessionStore | undefined): Promise<readonly string[]> {
  if (sessions === undefined) return [];
  if (sessions.list === undefined) throw invalid('from', 'a store whose sessions can be listed');
  return sessions.list();
}

function bothParts<Part>(name: string, from: Part | undefined, to: Part | undefined) {
  if (from === undefined || to === undefined)
    throw invalid('to', `a store that has ${name}, as the other has`);
  return { from, to };
}

function invalid(option: string, want: string): ConfigurationError {
  return new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, want });
}

class Tally {
  readonly left: CopyLeft[] = [];
  readonly #copied = { checkpoint: 0, approval: 0, session: 0 };
  readonly #equal = { checkpoint: 0, approval: 0, session: 0 };
  #saves = 0;

  add(record: CopiedRecord, id: string, outcome: CopyOutcome): void {
    switch (outcome.kind) {
      case 'copied':
        this.#copied[record] += 1;
        if (record === 'checkpoint') this.#saves += outcome.saves;
        return;
      case 'equal':
        this.#equal[record] += 1;
        return;
      case 'left': {
        const { reason, error } = outcome;
        this.left.push({ record, id, reason, ...(error && { error }) });
        return;
      }
      case 'gone':
        return;
      default:
        assertNever(outcome);
    }
  }

  result(): CopyResult {
    const count = (record: CopiedRecord): CopyCount => {
      return { copied: this.#copied[record], equal: this.#equal[record] };
    };
    return {
      checkpoints: count('checkpoint'),
      saves: this.#saves,
      approvals: count('approval'),
      sessions: count('session'),
      left: this.left,
    };
  }
}
