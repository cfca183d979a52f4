/** Where messages are stored already: a log that begins with them refers to them there, in place of a copy. */
import { extendsList, type Checkpoint, type Message } from '@lousho/contract';
import type { KnownLog, KnownLogs } from './known-logs.ts';
import type { LogFile } from './log-file.ts';
import { standsOnBase, type StoredLog } from './log-reader.ts';

/** Messages that are stored in a log, which another log may begin with. */
export interface SharedMessages {
  readonly path: string;
  readonly identity: string;
  /** So many saves of that log hold them. */
  readonly of: string;
  readonly messages: readonly Message[];
}

/** A copy of fewer costs less than a second name for the file they are in. */
const FEWEST_SHARED = 4;

/** What the log holds of this state, if that begins with the very objects that were written or read there. */
export function sharedFrom(known: KnownLog | undefined, state: Checkpoint): SharedMessages | undefined {
  if (known === undefined || known.hasBase) return undefined;
  for (const stored of [known.checkpoint, known.loaded]) {
    if (stored === undefined || stored.messages.length < FEWEST_SHARED) continue;
    if (extendsList(stored.messages, state.messages))
      return sharedOf(known.file, known.eventCount, stored.messages);
  }
  return undefined;
}

function sharedOf({ path, identity }: LogFile, saves: number, messages: readonly Message[]): SharedMessages {
  return { path, identity, of: String(saves), messages };
}

export interface OriginsDeps {
  readonly known: KnownLogs;
  /** Messages of a log of another kind that this state begins with. */
  readonly storedBy: (id: string, state: Checkpoint) => SharedMessages | undefined;
}

export class MessageOrigins {
  readonly #deps: OriginsDeps;
  /** Of lists that were read. */
  readonly #origins = new WeakMap<readonly Message[], SharedMessages>();

  constructor(deps: OriginsDeps) {
    this.#deps = deps;
  }

  /** The first so many saves of the log hold these messages. */
  note({ file, events }: StoredLog, saves: number, { messages }: Checkpoint): void {
    if (!standsOnBase(events)) this.#origins.set(messages, sharedOf(file, saves, messages));
  }

  /** The log that holds what a new one begins with: the one its messages come from, its session's, or the one it was forked from. */
  find(id: string, next: Checkpoint): SharedMessages | undefined {
    const { known, storedBy } = this.#deps;
    const source = next.forkedFrom?.sessionId;
    return (
      this.#origins.get(next.messages) ??
      storedBy(id, next) ??
      (source === undefined ? undefined : sharedFrom(known.get(source), next))
    );
  }
}
