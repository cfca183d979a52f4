/** What a listed key says about its run, so that a list needs no get. Written with the record, in one put. */
import {
  CHECKPOINT_VERSION,
  headerFromEvent,
  nextEvent,
  type Checkpoint,
  type CheckpointHeader,
  type CheckpointStatus,
  type LogEvent,
} from '@lousho/contract';
import { bytesOf, MAX_METADATA_BYTES } from './kv-namespace.ts';

/** Format of the metadata that this release writes. */
const FORMAT = 1;

/** Short keys: 1,024 bytes have to be enough for most headers. */
interface FullMetadata {
  readonly v: typeof FORMAT;
  /** The facts and the event of the codec in `@lousho/contract`. */
  readonly f: NonNullable<LogEvent['f']>;
  readonly e: LogEvent;
}
/** Of a header that does not fit: enough to know whether the run is asked for. */
interface ShortMetadata {
  readonly v: typeof FORMAT;
  readonly z: CheckpointStatus;
  readonly t: string;
}
export type RunMetadata = FullMetadata | ShortMetadata;

export interface ListedRun {
  readonly status: CheckpointStatus;
  readonly savedAt: string;
  /** Absent: it did not fit. */
  readonly header?: CheckpointHeader;
}

export function runMetadata(checkpoint: Checkpoint): RunMetadata {
  const full = checkpoint.version === CHECKPOINT_VERSION ? fullMetadata(checkpoint) : undefined;
  if (full !== undefined && bytesOf(JSON.stringify(full)) <= MAX_METADATA_BYTES) return full;
  const { status, savedAt } = checkpoint as Partial<Checkpoint>;
  return { v: FORMAT, z: status ?? 'in-progress', t: (savedAt ?? '').slice(0, 100) };
}

/** `undefined` for what this release did not write: the record has to be read. */
export function readMetadata(metadata: unknown): ListedRun | undefined {
  const known = metadata as RunMetadata | null | undefined;
  if (typeof known !== 'object' || known === null || known.v !== FORMAT) return undefined;
  if (!('f' in known)) return { status: known.z, savedAt: known.t };
  const header = headerFromEvent(known.f, known.e);
  return { status: header.status, savedAt: header.savedAt, header };
}

function fullMetadata(checkpoint: Checkpoint): FullMetadata {
  const { businessState: _state, ...rest } = checkpoint;
  const content = { messages: [], settledResults: [], heldInput: [], inputIds: [] };
  const { f = {}, b: _base, ...event } = nextEvent(undefined, { ...rest, ...content });
  return { v: FORMAT, f, e: { ...event, n: checkpoint.messages.length } };
}
