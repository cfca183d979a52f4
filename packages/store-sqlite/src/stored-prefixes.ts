/** Where the messages that a new run begins with are stored already: it then stands on that log instead of copying them. */
import {
  classifyCheckpointId,
  extendsList,
  type Checkpoint,
  type Message,
  type SharedPrefix,
} from '@lousho/contract';
import type { KnownLog } from './known-logs.ts';
import { sessionLogId } from './log-reader.ts';

/** The messages after event `seq` of the log. */
export interface Origin {
  readonly id: string;
  readonly key: number;
  readonly seq: number;
}

export interface StoredPrefix {
  readonly key: number;
  readonly shared: SharedPrefix;
}

export class StoredPrefixes {
  readonly #origins = new WeakMap<readonly Message[], Origin>();

  /** @param upToDate what is known of a log, if that is still what is stored */
  constructor(readonly upToDate: (id: string) => KnownLog | undefined) {}

  note(checkpoint: Checkpoint, origin: Origin): void {
    this.#origins.set(checkpoint.messages, origin);
  }

  /** The log its messages come from; else its session's, or the one it was forked from, with proof that it begins with theirs. */
  find(id: string, next: Checkpoint): StoredPrefix | undefined {
    return this.#byOrigin(next) ?? this.#byName(sourceOf(id, next), next);
  }

  #byOrigin({ messages }: Checkpoint): StoredPrefix | undefined {
    const origin = this.#origins.get(messages);
    const known = origin === undefined ? undefined : this.upToDate(origin.id);
    // Rewritten since: the log begins with other messages now.
    if (origin === undefined || known?.key !== origin.key || known.lastRewriteSeq > origin.seq)
      return undefined;
    return { key: known.key, shared: { of: origin.id, messages } };
  }

  #byName(of: string | undefined, next: Checkpoint): StoredPrefix | undefined {
    const known = of === undefined ? undefined : this.upToDate(of);
    if (known === undefined) return undefined;
    const states = [known.checkpoint, known.loaded].filter((state) => state !== undefined);
    for (const { messages } of states)
      if (extendsList(messages, next.messages)) return { key: known.key, shared: { of: known.id, messages } };
    // A fork with a change in its transcript: what stands before the change are the objects that were read.
    const kept = states.map(({ messages }) => sameBeginning(messages, next.messages));
    const messages = kept.reduce((longest, list) => (list.length > longest.length ? list : longest), []);
    return messages.length < FEWEST_SHARED
      ? undefined
      : { key: known.key, shared: { of: known.id, messages } };
  }
}

/** Referring to fewer is not worth that a log stands on another one. */
const FEWEST_SHARED = 4;

function sameBeginning(stored: readonly Message[], next: readonly Message[]): readonly Message[] {
  const at = stored.findIndex((message, index) => message !== next[index]);
  return at < 0 ? stored : stored.slice(0, at);
}

function sourceOf(id: string, next: Checkpoint): string | undefined {
  const kind = classifyCheckpointId(id);
  return kind.kind === 'session' ? sessionLogId(kind.sessionId) : next.forkedFrom?.sessionId;
}
