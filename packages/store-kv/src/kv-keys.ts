/**
 * Which key a record has. No id holds a `#`, so what stands behind one is never taken for a run.
 *
 * ```
 * <prefix><id>                        a run's newest checkpoint
 * <prefix><id>#t/<first>.<tag>        a part of its transcript that is never written again
 * <prefix><id>#history                the ids of its history entries, oldest first
 * <prefix><id>#history/<number>.<tag> one of them
 * <prefix><id>#lease                  who executes it; with /<tag> behind it: until when
 * <prefix>#approval/<id>              what waits for a person; with #claim behind it: who is removing it
 * <prefix>#session/<id>               a conversation; with #t/<first>.<tag> behind it: a part of its transcript
 * ```
 */
import { isCheckpointId } from '@lousho/contract';
import { MAX_KEY_BYTES } from './kv-namespace.ts';

const CHUNK = '#t/';
const HISTORY = '#history';
const ENTRY = '#history/';
const LEASE = '#lease';
const APPROVAL = '#approval/';
const CLAIM = '#claim';
const SESSION = '#session/';

/** Of a checkpoint, session or approval. */
const MAX_ID_BYTES = 300;
/** The longest that stands around an id: `#session/`, and `#t/` with a name; with room for names of a later release. */
const MAX_AROUND_ID_BYTES = 84;
/** Then every key fits, whatever the id. */
export const MAX_PREFIX_BYTES = MAX_KEY_BYTES - MAX_ID_BYTES - MAX_AROUND_ID_BYTES;

/** What a listed key stands for. */
export type ListedKey =
  | { readonly kind: 'run' | 'history' | 'lease' | 'approval' | 'session'; readonly id: string }
  | { readonly kind: 'chunk' | 'entry'; readonly id: string; readonly name: string }
  | { readonly kind: 'other' };

export class KVKeys {
  constructor(readonly prefix: string) {}

  run(id: string): string {
    return this.prefix + id;
  }
  session(id: string): string {
    return this.prefix + SESSION + id;
  }
  approval(id: string): string {
    return this.prefix + APPROVAL + id;
  }
  claim(id: string): string {
    return this.approval(id) + CLAIM;
  }
  lease(id: string): string {
    return this.run(id) + LEASE;
  }
  heartbeat(id: string, tag: string): string {
    return `${this.lease(id)}/${tag}`;
  }
  history(id: string): string {
    return this.run(id) + HISTORY;
  }
  entry(id: string, name: string): string {
    return this.run(id) + ENTRY + name;
  }
  get allApprovals(): string {
    return this.prefix + APPROVAL;
  }
  get allSessions(): string {
    return this.prefix + SESSION;
  }

  /** What a key of this prefix is; `other` for what no release of this package wrote. */
  parse(key: string): ListedKey {
    const rest = key.slice(this.prefix.length);
    const isRun: boolean = isCheckpointId(rest);
    if (isRun) return { kind: 'run', id: rest };
    if (rest.startsWith(APPROVAL)) return idOrOther('approval', rest.slice(APPROVAL.length));
    if (rest.startsWith(SESSION)) return idOrOther('session', rest.slice(SESSION.length));
    const mark = rest.indexOf('#');
    const id = rest.slice(0, Math.max(0, mark));
    if (!isCheckpointId(id)) return { kind: 'other' };
    const behind = rest.slice(mark);
    if (behind === HISTORY) return { kind: 'history', id };
    if (behind === LEASE) return { kind: 'lease', id };
    if (behind.startsWith(ENTRY)) return { kind: 'entry', id, name: behind.slice(ENTRY.length) };
    if (behind.startsWith(CHUNK)) return { kind: 'chunk', id, name: behind.slice(CHUNK.length) };
    return { kind: 'other' };
  }
}

/** A part of the transcript of the record with this key. */
export function chunkKey(recordKey: string, name: string): string {
  return recordKey + CHUNK + name;
}

/** Every key behind the record's own. */
export function keysBehind(recordKey: string): string {
  return `${recordKey}#`;
}

function idOrOther(kind: 'approval' | 'session', id: string): ListedKey {
  return isCheckpointId(id) ? { kind, id } : { kind: 'other' };
}
