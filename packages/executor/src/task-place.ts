/** Where the run of a sub-agent stands: below which call of which run, and what passes between the two while it executes. */
import type { DelegatedUsage, JsonValue, RunLimits, SegmentInfo } from '@lousho/contract';

export interface TaskPlace {
  /** Names from the outermost sub-agent to this one. */
  readonly subagentPath: readonly string[];
  /** What the id of every approval inside begins with: people decide with the lead, which the id names. */
  readonly approvalId: string;
  /** The caller's state as the lead has it: the sub-agent's until its tools change it. */
  readonly businessState: JsonValue | undefined;
  /** For who traces: the call that runs it. */
  calledBy(): NonNullable<SegmentInfo['calledBy']>;
  /** What the run has spent so far. Resolves when the lead has stored that. */
  spent(usage: DelegatedUsage): Promise<void>;
  /** What the limits of the lead leave to this run. */
  limitsLeft(): RunLimits;
  /** Before it is opened. @throws LOUSHO_SESSION_BUSY when the run that gave the task, or one above it, has lost its lease */
  ensureLeadHeld(): Promise<void>;
}
