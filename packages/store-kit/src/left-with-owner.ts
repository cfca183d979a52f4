/** What belongs to a run that is left is left with it, for the same reason: beside another state of that run it would be a leftover. */
import { checkpointIdOfApproval, classifyCheckpointId } from '@lousho/contract';
import { left, type CopyOutcome } from './copy-run.ts';
import type { CopiedRecord, CopyLeft } from './copy-tally.ts';

/** @param leftSoFar runs before what belongs to them */
export function leftWithOwner(
  record: CopiedRecord,
  id: string,
  leftSoFar: readonly CopyLeft[],
): CopyOutcome | undefined {
  const owner = leftSoFar.find((one) => one.record === 'checkpoint' && owns(one, record, id));
  return owner && left(owner.reason, owner.error);
}

function owns(run: CopyLeft, record: CopiedRecord, id: string): boolean {
  if (record === 'approval') return checkpointIdOfApproval(id) === run.id;
  if (record === 'checkpoint') {
    const named = classifyCheckpointId(id);
    return named.kind === 'child' && named.leadId === run.id;
  }
  // A turn that executes will soon be committed. With any other of its turns the conversation itself is compared.
  const named = classifyCheckpointId(run.id);
  return run.reason === 'executing' && named.kind === 'session' && named.sessionId === id;
}
