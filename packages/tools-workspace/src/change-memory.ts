/** Remembers a file before it is changed: its content, then the record that names it. */
import type { ToolContext } from '@lousho/contract';
import { loadBackup, storeBackup } from './backups.ts';
import type { BeforeChange } from './change-file.ts';
import { readRecords, writeRecord, type ChangeRecord } from './change-records.ts';
import { sha256, type OwnFolder } from './own-folder.ts';
import type { Workspace } from './workspace.ts';
import { shownPath } from './workspace-path.ts';

export interface ChangeFolders {
  readonly records: OwnFolder;
  readonly backups: OwnFolder;
}
export interface ChangeMemory {
  remember(before: BeforeChange, nextBytes: Uint8Array, ctx: ToolContext): Promise<void>;
  /** Whether this very call wrote what `bytes` are. */
  hasWritten(bytes: Uint8Array, ctx: ToolContext): Promise<boolean>;
}

export function changeMemory({ records, backups }: ChangeFolders, { ports }: Workspace): ChangeMemory {
  return {
    async hasWritten(bytes, ctx) {
      const hash = sha256(bytes);
      return (await readRecords(records)).some(
        ({ key, after }) => key === ctx.idempotencyKey && after.includes(hash),
      );
    },

    async remember(before, nextBytes, ctx) {
      const stored = await readRecords(records);
      const now = before.content === undefined ? 'absent' : sha256(before.content.bytes);
      const next = sha256(nextBytes);
      // A re-run that finds what it left or what was there before it: its first record stays, with the content from before its first try.
      const first = stored.find(
        (each) => isSameCall(each, before, ctx) && [stateBefore(each), ...each.after].includes(now),
      );
      if (first !== undefined) {
        if (!first.after.includes(next))
          await writeRecord(records, { ...first, after: [...first.after, next] });
        return;
      }
      const wallMs = ports.clock.wallMs();
      // 1. The content. Crash here: a backup that no record names; `prune` removes it.
      if (before.content !== undefined) await storeBackup(backups, before.content.bytes, wallMs);
      // 2. The record. From here on a rewind knows the change.
      const number = Math.max(0, ...stored.map((each) => each.number)) + 1;
      await writeRecord(records, recordOf(before, next, ctx, number, new Date(wallMs).toISOString()));
      // 3. A `prune` in another process may have listed the records before 2 and removed an old backup after 1.
      if (before.content !== undefined && (await loadBackup(backups, now)) === undefined)
        await storeBackup(backups, before.content.bytes, wallMs);
    },
  };
}

/** `'absent'`, or the hash of the content. */
export function stateBefore({ before }: ChangeRecord): string {
  return before.kind === 'absent' ? 'absent' : before.sha256;
}

function isSameCall(record: ChangeRecord, before: BeforeChange, ctx: ToolContext): boolean {
  return record.key === ctx.idempotencyKey && record.path === shownPath(before.names);
}

function recordOf(
  { names, content, madeFolders }: BeforeChange,
  next: string,
  ctx: ToolContext,
  number: number,
  changedAt: string,
): ChangeRecord {
  return {
    version: 1,
    number,
    key: ctx.idempotencyKey,
    path: shownPath(names),
    toolName: ctx.toolName,
    toolCallId: ctx.toolCallId,
    runId: ctx.runId,
    ...(ctx.sessionId === undefined ? undefined : { sessionId: ctx.sessionId }),
    step: ctx.step,
    changedAt,
    before:
      content === undefined
        ? { kind: 'absent', madeFolders: madeFolders.map(shownPath) }
        : {
            kind: 'file',
            sha256: sha256(content.bytes),
            bytes: content.bytes.length,
            mode: content.stats.mode & 0o777,
          },
    after: [next],
  };
}
