/** Copies one approval or one conversation: a single write each, read back and compared. */
import type { ApprovalStore, Clock, SessionRecord, SessionStore, StoreClaims } from '@lousho/contract';
import { left, type CopyOutcome } from './copy-run.ts';
import { readBack } from './read-back.ts';
import { readRecord } from './read-record.ts';
import { sameValue } from './same-value.ts';

export interface CopyRecordDeps<Part> {
  readonly from: Part;
  readonly to: Part;
  readonly claims: StoreClaims | undefined;
  readonly clock: Clock;
}

export async function copyApproval(
  id: string,
  { from, to, claims, clock }: CopyRecordDeps<ApprovalStore>,
): Promise<CopyOutcome> {
  const source = await readRecord(() => from.load(id));
  if ('error' in source) return left('unreadable', source.error);
  const { record } = source;
  if (!record) return { kind: 'gone' };
  const target = await readRecord(() => to.load(id));
  if ('error' in target) return left('unreadable-in-target', target.error);
  if (target.record) return sameValue(record, target.record) ? { kind: 'equal' } : left('differs');
  await to.save(record);
  await readBack(claims, clock, id, async () => sameValue(record, await to.load(id)));
  // Decided meanwhile: the inbox of the target must not show it.
  if (await from.load(id)) return { kind: 'copied', saves: 1 };
  await to.delete(id);
  return { kind: 'gone' };
}

/** Revisions are counted by each store: the copy begins at 1. */
export async function copySession(
  id: string,
  { from, to, claims, clock }: CopyRecordDeps<SessionStore>,
): Promise<CopyOutcome> {
  const source = await readRecord(() => from.load(id));
  if ('error' in source) return left('unreadable', source.error);
  const { record } = source;
  if (!record) return { kind: 'gone' };
  const target = await readRecord(() => to.load(id));
  if ('error' in target) return left('unreadable-in-target', target.error);
  if (target.record) return sameSession(record, target.record) ? { kind: 'equal' } : left('differs');
  if (!(await to.saveIfRevision(record, 0))) return left('differs');
  await readBack(claims, clock, id, async () => sameSession(record, await to.load(id)));
  return (await from.load(id))?.revision === record.revision ? { kind: 'copied', saves: 1 } : left('changed');
}

function sameSession(a: SessionRecord, b: SessionRecord | null | undefined): boolean {
  return !!b && sameValue({ ...a, revision: 0 }, { ...b, revision: 0 });
}
