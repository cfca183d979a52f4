/** Lets the time of the machine go on while work waits, until it ends, its process dies, or nothing more will come. */
import { platformClock } from '@lousho/contract';
import type { ManualClock } from '../manual-clock.ts';
import { settle } from '../settle-clock.ts';

/** Long enough for a scenario on a slow disk, short enough for a test to wait for. */
const STUCK_AFTER_REAL_MS = 20_000;
/**
 * A store on a disk takes real time for what it is asked; the clock stands still meanwhile, or heartbeats would pass within one call. One
 * that takes longer than this is taken to wait for the clock in a way that nobody sees.
 */
const PATIENCE_FOR_A_CALL_REAL_MS = 1_000;
/**
 * While the work waits, the clock goes on by this much a turn: little, so that a hash or another moment of real waiting lasts no
 * heartbeat. After so many turns, half an hour, nothing will come.
 */
const MS_A_TURN = 100;
const MAX_TURNS = 20_000;

export type WorkEnd =
  | { readonly kind: 'resolved' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'died' }
  | { readonly kind: 'stuck' };

/** The process that works; one that asks no store and never dies needs none. */
export interface WorkingProcess {
  readonly isDead: boolean;
  /** Whether the store is working on a call, and none of its calls waits for time to pass. */
  readonly isStoreAtWork: boolean;
}

export async function driveToEnd(
  work: () => void | Promise<void>,
  clock: ManualClock,
  process: WorkingProcess = { isDead: false, isStoreAtWork: false },
): Promise<WorkEnd> {
  const ends: WorkEnd[] = [];
  const fail = (error: unknown): void => void ends.push({ kind: 'failed', error });
  void (async () => work())().then(() => ends.push({ kind: 'resolved' }), fail);
  const giveUpAtMs = platformClock.monotonicMs() + STUCK_AFTER_REAL_MS;
  for (let turn = 0; turn < MAX_TURNS && platformClock.monotonicMs() < giveUpAtMs; turn += 1) {
    await settle();
    await letCallsEnd(process);
    // First: whatever a dead process believes to have reached does not count.
    if (process.isDead) return { kind: 'died' };
    if (ends[0] !== undefined) return ends[0];
    // A timer that throws ends a process like any uncaught error.
    await clock.advance(MS_A_TURN).catch(fail);
  }
  return { kind: 'stuck' };
}

async function letCallsEnd(process: WorkingProcess): Promise<void> {
  const giveUpAtMs = platformClock.monotonicMs() + PATIENCE_FOR_A_CALL_REAL_MS;
  while (process.isStoreAtWork && !process.isDead && platformClock.monotonicMs() < giveUpAtMs) await settle();
}

export function describeEnd(end: WorkEnd): string {
  if (end.kind === 'stuck') return 'got stuck';
  if (end.kind !== 'failed') return end.kind;
  const { error } = end;
  return `failed: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`;
}
