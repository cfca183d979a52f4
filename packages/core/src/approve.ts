/** Pauses that the agent's `approve` decides: what it says goes the way of any decision, and what it defers waits for a person. */
import {
  ConfigurationError,
  isSDKError,
  type ApprovalDecision,
  type ApprovalRequest,
  type ExecutionResult,
} from '@lousho/contract';
import type { Approve, ApproveOutcome } from './agent-config.ts';

export interface PauseDecider {
  readonly approve: Approve | undefined;
  /** `undefined` when nothing waits on this id any more. */
  readonly find: (approvalId: string) => Promise<ApprovalRequest | undefined>;
  /** What the run comes to after this decision. */
  readonly decide: (decision: ApprovalDecision) => Promise<ExecutionResult>;
}

/**
 * What the run comes to: its end, or a pause of which every call was deferred. Each call is asked about once. A crash in between leaves
 * the run paused, for a person or for the next `approve`.
 * @throws what `approve` and the run throw, LOUSHO_CONFIG_INVALID for an outcome that is none; the approval then stays pending
 */
export async function decidePauses(
  result: ExecutionResult,
  { approve, find, decide }: PauseDecider,
): Promise<ExecutionResult> {
  if (approve === undefined) return result;
  let current = result;
  const asked = new Set<string>();
  for (;;) {
    const id = waitingIds(current).find((candidate) => !asked.has(candidate));
    if (id === undefined) return current;
    asked.add(id);
    const request = await find(id);
    if (request === undefined) continue;
    const outcome = requireOutcome(await approve(request));
    if (outcome === 'defer') continue;
    try {
      current = await decide({ ...outcome, id });
    } catch (error) {
      // A person was faster: the run is theirs.
      if (!isSDKError(error, 'LOUSHO_APPROVAL_DECIDED')) throw error;
    }
  }
}

function waitingIds(result: ExecutionResult): readonly string[] {
  return result.finishReason === 'awaiting-approval' ? result.approvalIds : [];
}

/** A plain `true` is no outcome: what decides about money says what it means. */
function requireOutcome(outcome: ApproveOutcome): ApproveOutcome {
  if (outcome === 'defer') return outcome;
  const given: unknown = outcome;
  const { approved } = (typeof given === 'object' && given !== null ? given : {}) as { approved?: unknown };
  if (typeof approved === 'boolean') return outcome;
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
    option: 'approve',
    got: given,
    want: "a function that gives 'defer' or { approved: true | false }",
  });
}
