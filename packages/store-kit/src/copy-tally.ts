/** What a copy or an import came to, added up record by record. */
import { assertNever, type StoredError } from '@lousho/contract';
import type { CopyOutcome, LeftReason } from './copy-run.ts';

export type CopiedRecord = 'checkpoint' | 'approval' | 'session';

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

export class CopyTally {
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
