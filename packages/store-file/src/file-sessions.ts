/** Transcripts of sessions. Each is a log like a run's, so a commit costs its own new messages, however long the conversation is. */
import {
  assertCheckpointId,
  deepFreeze,
  frozenCopy,
  parseSessionRecord,
  sessionAsCheckpoint,
  sessionOfCheckpoint,
  type Checkpoint,
  type SessionRecord,
  type SessionStore,
} from '@lousho/contract';
import type { CompactWhen } from './compaction.ts';
import { isTemp } from './disk.ts';
import type { EventLogs } from './event-logs.ts';
import { isDamage } from './file-errors.ts';
import type { Generations, SealedLog } from './generations.ts';
import { isEmptyLog, listIfFolder, ownIdOf, readSavedAt } from './header-reader.ts';
import type { KeyedQueue } from './keyed-queue.ts';
import { LogFolder } from './log-folder.ts';
import { stateOf, type LogKind } from './log-reader.ts';
import type { Operations } from './operations.ts';
import type { StoreFormat } from './store-format.ts';
import type { StorePlace } from './store-place.ts';

export const sessionKind: LogKind = {
  kind: 'session',
  record: 'session',
  // Compare-and-swap needs the newest state alone.
  keptEntries: 1,
  keptBytes: 0,
  parse(state, id) {
    parseSessionRecord(sessionOfCheckpoint(state as Checkpoint, id), id);
    return state as Checkpoint;
  },
};

export interface SessionsDeps {
  /** The folder of all sessions. */
  readonly root: string;
  readonly place: StorePlace;
  readonly logs: EventLogs;
  readonly generations: Generations;
  readonly operations: Operations;
  readonly format: StoreFormat;
  readonly queue: KeyedQueue;
  /** Tells this handle's commits from those of others. */
  readonly writer: string;
}

/** Each time another process was faster; that this happens so often is no accident. */
const MAX_ATTEMPTS = 1_000;

export class FileSessions implements SessionStore {
  readonly #deps: SessionsDeps;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  async load(id: string): Promise<SessionRecord | null> {
    assertCheckpointId(id);
    const { operations, format, queue, logs } = this.#deps;
    return operations.perform({ name: 'sessions.load', id, kind: 'read' }, async () => {
      await format.assertReadable();
      // As it is known, when nobody else wrote it: each turn of a long conversation would read it whole.
      const state = await queue.run(id, () => logs.current(id));
      return state === null ? null : deepFreeze(sessionOfCheckpoint(state, id));
    });
  }

  async saveIfRevision(record: SessionRecord, expectedRevision: number): Promise<boolean> {
    const { id } = record;
    assertCheckpointId(id);
    const { operations, format, queue, logs, writer } = this.#deps;
    return operations.perform({ name: 'sessions.saveIfRevision', id, kind: 'write' }, async () => {
      const next = sessionAsCheckpoint({ ...frozenCopy(record), revision: expectedRevision + 1 });
      await format.assertWritable();
      return queue.run(id, async () => {
        const isSaved = await logs.write(id, next, {
          limit: async () => Infinity,
          knownLimit: Infinity,
          replaces: (state) => (state?.stepIndex ?? 0) === expectedRevision,
          writer,
        });
        // What was said is to be gone, not only superseded.
        const isCleared = next.messages.length === 0;
        if (isSaved && (isCleared || logs.wantsCompaction(id, { hasEnded: false })))
          await compactQuietly(logs, id, isCleared ? 'always' : 'worth-it');
        return isSaved;
      });
    });
  }

  async delete(id: string): Promise<void> {
    assertCheckpointId(id);
    const { operations, format } = this.#deps;
    await operations.perform({ name: 'sessions.delete', id, kind: 'write' }, async () => {
      await format.assertReadable();
      await this.remove(id);
    });
  }

  async list(): Promise<readonly string[]> {
    const { operations, format } = this.#deps;
    return operations.perform({ name: 'sessions.list', kind: 'read' }, async () => {
      await format.assertReadable();
      return this.ids();
    });
  }

  /** Sorted. */
  async ids(): Promise<string[]> {
    const { generations, root } = this.#deps;
    const names = ((await generations.disk.listIfThere(root)) ?? []).filter((name) => !isTemp(name));
    const ids: string[] = [];
    for (const name of names) {
      const id = await this.#idIn(new LogFolder(generations.disk, root, name));
      if (id !== undefined) ids.push(id);
    }
    return ids.sort();
  }

  /** When each was saved last; one of which that is not known is left out. */
  async savedAt(): Promise<{ readonly id: string; readonly savedAtMs: number }[]> {
    const { generations, logs } = this.#deps;
    const all: { readonly id: string; readonly savedAtMs: number }[] = [];
    for (const id of await this.ids()) {
      const at = await readSavedAt(generations.disk, logs.folderOf(id), generations);
      const savedAtMs = typeof at === 'string' ? Date.parse(at) : at;
      if (savedAtMs !== undefined && !Number.isNaN(savedAtMs)) all.push({ id, savedAtMs });
    }
    return all;
  }

  /** Whether it was removed. An unknown id is fine. @param isWanted asked with what is final: `false` leaves the session as it is */
  async remove(id: string, isWanted?: IsWanted): Promise<boolean> {
    const { queue, logs, place } = this.#deps;
    return queue.run(id, async () => {
      await place.assertSame();
      await logs.forget(id);
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const outcome = await this.#tryToRemove(id, isWanted);
        if (outcome !== 'again') return outcome === 'removed';
      }
      throw new Error(`the session "${id}" was written by others all the time`);
    });
  }

  async #idIn(folder: LogFolder): Promise<string | undefined> {
    const listing = await listIfFolder(folder);
    if (listing === undefined) return undefined;
    const { generations } = this.#deps;
    const id = await ownIdOf(generations.disk, folder, listing);
    if (id === undefined) return undefined;
    return (await isEmptyLog(generations.disk, folder, listing.topLog)) ? undefined : id;
  }

  async #tryToRemove(id: string, isWanted: IsWanted | undefined): Promise<'removed' | 'kept' | 'again'> {
    const { generations, logs } = this.#deps;
    const folder = logs.folderOf(id);
    const listing = await folder.list();
    if (listing === undefined) {
      await folder.removeUpTo(0);
      return 'removed';
    }
    const number = listing.topLog + 1;
    // 1. Seal what is there. Crash here: the next commit goes on in a new log.
    const sealed = await generations.closeBefore(folder, id, number);
    const record = isWanted === undefined ? undefined : recordIn(sealed);
    // A damaged one is not judged: an operator restores or deletes it.
    if (isWanted !== undefined && (record === undefined || !(await isWanted(record)))) {
      await generations.open(folder, id, number);
      return 'kept';
    }
    // 2. Put a log in front that has no state. From here on the session is deleted, whatever is left of its files.
    const witness = folder.witnessOf(listing);
    if ((await generations.publishEmpty(folder, id, number, witness)) !== 'made') return 'again';
    await folder.removeOlder(number);
    await folder.removeUpTo(number);
    await generations.disk.syncFolder(folder.root);
    return 'removed';
  }
}

type IsWanted = (record: SessionRecord) => Promise<boolean>;

function recordIn(sealed: SealedLog | undefined): SessionRecord | undefined {
  if (sealed?.state !== 'whole') return undefined;
  try {
    return sessionOfCheckpoint(stateOf(sealed.log, sessionKind), sealed.log.id);
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}

async function compactQuietly(logs: EventLogs, id: string, when: CompactWhen): Promise<void> {
  try {
    await logs.compact(id, when);
  } catch {
    // The commit is stored. The log is only longer than it need be, until the next one that asks for it.
    return undefined;
  }
}
