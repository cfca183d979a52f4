/** The newest saves of each run, by reference: what two entries have in common exists once. */
import type { Checkpoint, CheckpointHistoryEntry, JsonValue } from '@lousho/contract';
import { statusOf } from './stored-status.ts';

export interface HistoryLimits {
  readonly historyLimit: number;
  readonly historyMaxBytes: number;
}
interface Ring {
  /** Oldest first. */
  readonly entries: CheckpointHistoryEntry[];
  bytes: number;
}

export class MemoryHistory {
  private readonly rings = new Map<string, Ring>();

  constructor(private readonly limits: HistoryLimits) {}

  append(id: string, checkpoint: Checkpoint): void {
    if (this.limits.historyLimit === 0) return;
    const ring = this.rings.get(id) ?? { entries: [], bytes: 0 };
    this.rings.set(id, ring);
    const entry: CheckpointHistoryEntry = Object.freeze({
      step: checkpoint.stepIndex,
      savedAt: checkpoint.savedAt,
      status: statusOf(checkpoint),
      checkpoint,
    });
    ring.bytes += bytesHeldBy(entry, ring.entries.at(-1));
    ring.entries.push(entry);
    while (ring.entries.length > this.limits.historyLimit) dropOldest(ring);
    while (ring.bytes > this.limits.historyMaxBytes && ring.entries.length > 1) dropOldest(ring);
  }

  newestFirst(id: string, limit = Infinity): CheckpointHistoryEntry[] {
    const entries = this.rings.get(id)?.entries ?? [];
    return entries.slice(Math.max(0, entries.length - limit)).reverse();
  }

  ids(): Iterable<string> {
    return this.rings.keys();
  }

  countOf(id: string): number {
    return this.rings.get(id)?.entries.length ?? 0;
  }

  delete(id: string): void {
    this.rings.delete(id);
  }

  clear(): void {
    this.rings.clear();
  }
}

function dropOldest(ring: Ring): void {
  const dropped = ring.entries.shift();
  if (dropped !== undefined) ring.bytes -= bytesHeldBy(dropped, ring.entries[0]);
}

/** A place in a list. */
const BYTES_A_REFERENCE = 8;

/**
 * What an entry holds that its neighbour does not, estimated: its own list of messages, and the caller's state when that changed. The
 * messages themselves are the run's, which has them all anyway. Costs nothing that grows with the transcript.
 */
function bytesHeldBy(
  { checkpoint }: CheckpointHistoryEntry,
  neighbour: CheckpointHistoryEntry | undefined,
): number {
  const { messages, businessState } = checkpoint;
  const isShared = neighbour !== undefined && neighbour.checkpoint.businessState === businessState;
  return messages.length * BYTES_A_REFERENCE + (isShared ? 0 : bytesOf(businessState));
}

const bytesOfState = new WeakMap<object, number>();

/** Two bytes a character of the JSON text. Frozen state never changes, so it is measured once. */
function bytesOf(state: JsonValue | undefined): number {
  if (typeof state === 'string') return state.length * 2;
  if (typeof state !== 'object' || state === null) return BYTES_A_REFERENCE;
  let bytes = bytesOfState.get(state);
  if (bytes === undefined) bytesOfState.set(state, (bytes = JSON.stringify(state).length * 2));
  return bytes;
}
