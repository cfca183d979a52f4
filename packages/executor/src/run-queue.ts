/** Calls with one id over one store object follow each other in this process, in the order they were made. */
import { SDKError, type ApprovalStore, type CheckpointStore } from '@lousho/contract';
import { insideRun, isInsideRun } from './reentrancy.ts';
import { unlessAborted } from './run-stop.ts';

/** The calls with one id; its key is what code inside of them is recognised by. */
interface Line {
  readonly key: object;
  last: Promise<unknown>;
  length: number;
}
const linesOfStore = new WeakMap<object, Map<string, Line>>();

export type WhenBusy = 'wait' | 'refuse';

export interface Place {
  /** Where the run lies: its store, or the inbox whose records carry it. */
  readonly store: CheckpointStore | ApprovalStore;
  readonly id: string;
  readonly whenBusy: WhenBusy;
  /** Leaves the line: `work` then runs at once, and finds the signal aborted. */
  readonly left: AbortSignal;
}

/**
 * Runs `work` when the calls before it have ended, however they ended.
 * @throws LOUSHO_SESSION_BUSY when it is not to wait, or when it comes from code of the very run that it would wait for: a tool, a hook, a gate
 */
export async function inLine<Value>(
  { store, id, whenBusy, left }: Place,
  work: () => Promise<Value>,
): Promise<Value> {
  const line = lineOf(store, id);
  if (isInsideRun(line.key) || (whenBusy === 'refuse' && line.length > 0)) {
    throw new SDKError('LOUSHO_SESSION_BUSY', { sessionId: id });
  }
  line.length += 1;
  const before = line.last;
  const mine = (async () => {
    if (line.length > 1) await unlessAborted(left, before);
    return insideRun(line.key, work);
  })();
  // Whoever comes next waits for all before it, also for those that this one left waiting.
  line.last = Promise.allSettled([before, mine]);
  try {
    return await mine;
  } finally {
    line.length -= 1;
    if (line.length === 0) linesOfStore.get(store)?.delete(id);
  }
}

/** Whether this process executes the run, or something waits for it. */
export function isInLine(store: object, id: string): boolean {
  return linesOfStore.get(store)?.has(id) === true;
}

/** Whether the caller is code of a run in this line: whatever it waits for there would wait for it. */
export function isInsideLine(store: Place['store'], id: string): boolean {
  const line = linesOfStore.get(store)?.get(id);
  return line !== undefined && isInsideRun(line.key);
}

function lineOf(store: object, id: string): Line {
  let lines = linesOfStore.get(store);
  if (lines === undefined) linesOfStore.set(store, (lines = new Map<string, Line>()));
  let line = lines.get(id);
  if (line === undefined) lines.set(id, (line = { key: {}, last: Promise.resolve(), length: 0 }));
  return line;
}
