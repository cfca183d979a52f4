/** Which runs, conversations and approvals are old and needed by nobody, and their removal. Inside write transactions. */
import type { Database, Statement } from 'better-sqlite3';
import {
  classifyCheckpointId,
  transcriptCheckpointId,
  type CheckpointApproval,
  type CheckpointStatus,
  type LogEvent,
  type PruneResult,
} from '@lousho/contract';
import type { EventLogs } from './event-logs.ts';
import { nameOf, sessionLogId } from './log-reader.ts';
import { ROW, isIntact, type LogRow, type LogStatus } from './log-tables.ts';
import { parseEvent } from './packed-event.ts';
import { nothingPruned, type PruneBatch, type PrunePlan, type PruneSteps } from './prune-plan.ts';
import type { SqliteLeases } from './sqlite-leases.ts';

interface InboxRow {
  readonly id: string;
  readonly checkpointId: string;
  readonly createdAt: string;
}

const RUNS_A_BATCH = 100;

export class Pruning implements PruneSteps {
  readonly #logs: EventLogs;
  readonly #leases: SqliteLeases;
  readonly #historyLimit: number;
  readonly #oldRows: Statement<[number, number, number], LogRow>;
  readonly #approvals: Statement<[], InboxRow>;
  readonly #approvalsOf: Statement<[string], string>;
  readonly #deleteApproval: Statement<[string]>;
  readonly #oldLeases: Statement<[number], string>;

  constructor(connection: Database, logs: EventLogs, leases: SqliteLeases, historyLimit: number) {
    this.#logs = logs;
    this.#leases = leases;
    this.#historyLimit = historyLimit;
    this.#oldRows = connection.prepare(
      `SELECT ${ROW} FROM runs WHERE key > ? AND saved_at <= ? ORDER BY key LIMIT ?`,
    );
    // An approval with a snapshot is the only place where its run is stored.
    this.#approvals = connection.prepare(
      `SELECT id, checkpoint_id AS checkpointId, created_at AS createdAt FROM approvals
       WHERE json_valid(record) AND json_extract(record, '$.snapshot') IS NULL`,
    );
    this.#approvalsOf = connection
      .prepare<[string], string>('SELECT id FROM approvals WHERE checkpoint_id = ?')
      .pluck();
    this.#deleteApproval = connection.prepare('DELETE FROM approvals WHERE id = ?');
    this.#oldLeases = connection
      .prepare<[number], string>(
        `SELECT id FROM leases WHERE id <> '' AND expires_at + ttl_ms <= ?
         AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = leases.id)`,
      )
      .pluck();
  }

  /** One batch of logs with a key above `afterKey`. @param dryRun counts, removes nothing */
  batch(plan: PrunePlan, afterKey: number, dryRun: boolean): PruneBatch {
    const rows = this.#oldRows.all(afterKey, plan.cutoffMs, RUNS_A_BATCH);
    const counts = { ...nothingPruned };
    for (const row of rows) {
      if (!this.#isPrunable(row, plan)) continue;
      for (const one of [row, ...this.#childrenOf(row)]) this.#remove(one, counts, plan, dryRun);
    }
    const last = rows.length < RUNS_A_BATCH ? undefined : rows.at(-1);
    return { counts, nextKey: last?.key };
  }

  /** What no run needs any more once the logs are pruned. */
  leftovers(plan: PrunePlan, dryRun: boolean): PruneResult {
    const orphans = plan.scope === 'runs' ? [] : this.#orphans(plan);
    if (!dryRun) {
      for (const id of orphans) this.#deleteApproval.run(id);
      for (const id of this.#oldLeases.all(plan.cutoffMs)) this.#leases.forget(id);
    }
    return { ...nothingPruned, approvals: orphans.length };
  }

  /** Old approvals that no run waits on. Those of runs that are pruned in the same go are counted with them. */
  #orphans(plan: PrunePlan): readonly string[] {
    const orphans = this.#approvals.all().filter(({ id, checkpointId, createdAt }) => {
      if (!(Date.parse(createdAt) <= plan.cutoffMs)) return false;
      const row = this.#logs.tables.rowById(checkpointId);
      if (row === undefined || row.status === 'deleted') return !this.#leases.isLive(checkpointId);
      return !this.#leases.isLive(checkpointId) && !this.#waitsOn(row, id) && !this.#goes(row, plan);
    });
    return orphans.map(({ id }) => id);
  }

  #remove(row: LogRow, counts: Counts, plan: PrunePlan, dryRun: boolean): void {
    if (row.status === 'session') {
      counts.sessions += 1;
      if (!dryRun) this.#logs.remove(row, { keepHistory: false });
      return;
    }
    const isRun = row.status !== 'deleted';
    const approvals = isRun && plan.scope === 'all' ? this.#approvalsOf.all(row.id) : [];
    const events = (this.#logs.tables.lastSeq(row.key) ?? row.firstSeq - 1) - row.firstSeq + 1;
    counts.historyEntries += Math.min(events, this.#historyLimit);
    counts.approvals += approvals.length;
    if (isRun) counts.checkpoints += 1;
    if (dryRun) return;
    for (const id of approvals) this.#deleteApproval.run(id);
    this.#logs.remove(row, { keepHistory: false });
    this.#leases.forget(row.id);
  }

  #isPrunable(row: LogRow, plan: PrunePlan): boolean {
    const last = this.#lastEvent(row);
    // A damaged run is not judged: an operator restores or deletes it.
    if (last === undefined || savedAtMs(last) > plan.cutoffMs) return false;
    if (row.status === 'session') return this.#isAtRest(nameOf(row), plan);
    if (this.#leases.isLive(row.id)) return false;
    if (row.status === 'deleted') return plan.scope === 'all';
    return (
      this.#mayGo(row, row.status, plan) && !isWaited(last) && !this.#childrenOf(row).some(this.#isInUse)
    );
  }

  #mayGo({ id }: LogRow, status: CheckpointStatus, plan: PrunePlan): boolean {
    const kind = classifyCheckpointId(id);
    // The result of a sub-agent is its lead's to take; it goes with the lead, or when there is none.
    if (kind.kind === 'child') return !this.#exists(kind.leadId) && !this.#leases.isLive(kind.leadId);
    if (kind.kind === 'session' && status === 'finished' && !this.#conversationGoes(kind.sessionId, plan))
      return false;
    return plan.statuses.has(status) || id.endsWith('.fire');
  }

  /** A turn that ended may not be in its transcript yet: its end is the conversation's to take. It goes with that, or when there is none. */
  #conversationGoes(sessionId: string, plan: PrunePlan): boolean {
    if (plan.scope === 'runs' || this.#exists(transcriptCheckpointId(sessionId))) return false;
    const row = this.#logs.tables.rowById(sessionLogId(sessionId));
    if (row === undefined) return true;
    const last = this.#lastEvent(row);
    return last !== undefined && savedAtMs(last) <= plan.cutoffMs;
  }

  readonly #isInUse = (row: LogRow): boolean => {
    const last = this.#lastEvent(row);
    return this.#leases.isLive(row.id) || (last !== undefined && isWaited(last));
  };

  #childrenOf({ id, status }: LogRow): LogRow[] {
    // A dot is the character after the hyphen: everything that begins with `<id>.sub-`.
    return status === 'session' ? [] : this.#logs.tables.rowsBetween(`${id}.sub-`, `${id}.sub.`);
  }

  /** A conversation counts as finished when no turn executes and none is stored that stays. */
  #isAtRest(sessionId: string, plan: PrunePlan): boolean {
    if (plan.scope === 'runs' || !plan.statuses.has('finished') || this.#leases.isLive(sessionId))
      return false;
    const [after, before] = [`${sessionId}.turn-`, `${sessionId}.turn.`];
    if (this.#leases.isAnyLive(after, before)) return false;
    const turns = this.#logs.tables.rowsBetween(after, before).filter(({ status }) => status !== 'deleted');
    return turns.every((turn) => this.#goes(turn, plan));
  }

  /** By itself or with its lead. */
  #goes(row: LogRow, plan: PrunePlan): boolean {
    if (this.#isPrunable(row, plan)) return true;
    const kind = classifyCheckpointId(row.id);
    const lead = kind.kind === 'child' ? this.#logs.tables.rowById(kind.leadId) : undefined;
    return lead !== undefined && this.#isPrunable(lead, plan);
  }

  #exists(id: string): boolean {
    const status: LogStatus | undefined = this.#logs.tables.rowById(id)?.status;
    return status !== undefined && status !== 'deleted';
  }

  #waitsOn(row: LogRow, approvalId: string): boolean {
    const last = this.#lastEvent(row);
    return last === undefined || undecided(last).some(({ id }) => id === approvalId);
  }

  #lastEvent(row: LogRow): LogEvent | undefined {
    const seq = this.#logs.tables.lastSeq(row.key);
    const [event] = seq === undefined ? [] : this.#logs.tables.events(row.key, seq, seq);
    return event !== undefined && isIntact(event) ? parseEvent(event[1]) : undefined;
  }
}

type Counts = { -readonly [Kind in keyof PruneResult]: PruneResult[Kind] };

function savedAtMs({ t }: LogEvent): number {
  const epochMs = typeof t === 'number' ? t : Date.parse(t);
  // A time that nobody can read is never old enough.
  return Number.isNaN(epochMs) ? Infinity : epochMs;
}

/** Somebody may still decide about it. */
function isWaited(last: LogEvent): boolean {
  if (undecided(last).length > 0) return true;
  return last.z === 'awaiting-approval' && last.v?.approvals === undefined;
}

function undecided(last: LogEvent): readonly CheckpointApproval[] {
  const approvals = (last.v?.approvals ?? []) as unknown as readonly CheckpointApproval[];
  return approvals.filter(({ decision }) => decision === undefined);
}
