/** One fire of a schedule: however many replicas fire it, one of them runs it, and a crash leaves a run that recovery finds. */
import { ConfigurationError, isSDKError, type ExecutionResult } from '@lousho/contract';
import { claimMark, exclusively, executePlan } from '@lousho/executor/wiring';
import type { AgentParts } from './agent-config.ts';
import { decideInCode } from './approvals.ts';
import type { LiveRuns } from './live-runs.ts';
import { planInput } from './plan-run.ts';
import { requireOptions } from './require-options.ts';
import type { FireOptions, Schedule } from './schedule.ts';
import { fireTimesOf, type FireTimes } from './schedule-times.ts';

const DAY_MS = 86_400_000;

/** A timer that is later leaves its fire: others have had it, and the mark that says so may be gone. A day may have 23 hours. */
export const LATEST_FIRE_MS = DAY_MS / 2;

/** `null` when another replica has this fire time. @throws LOUSHO_SCHEDULE_INVALID, and what `Agent.send` does */
export async function fireSchedule(
  parts: AgentParts,
  live: LiveRuns,
  schedule: Schedule,
  options: FireOptions,
): Promise<ExecutionResult | null> {
  requireOptions(options, { firedAt: true, signal: true });
  const { firedAt, signal } = options;
  const times = fireTimesOf(schedule);
  const at: unknown = firedAt ?? new Date(thisSecond(parts));
  const atMs = at instanceof Date ? at.getTime() : NaN;
  if (!Number.isSafeInteger(atMs))
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'firedAt',
      got: firedAt,
      want: 'a valid Date',
    });
  const result = await claimAndRun(parts, live, schedule, { atMs, times, signal });
  return result && decideInCode(parts, live, result, { signal });
}

/** What callers know the fire by. */
export function runIdOf({ id, sessionId }: Schedule, atMs: number): string {
  return sessionId ?? `${id}-${new Date(atMs).toISOString().replace(/[-:]/g, '').replace('.000', '')}`;
}

function thisSecond({ engine }: AgentParts): number {
  const nowMs = engine.ports.clock.wallMs();
  return nowMs - (nowMs % 1_000);
}

interface Fire {
  readonly atMs: number;
  readonly times: FireTimes;
  readonly signal: AbortSignal | undefined;
}

function claimIdOf({ id }: Schedule, atMs: number): string {
  return `${id}.${atMs}.fire`;
}

/**
 * 1. The claim's lease: others that fire at this moment leave it to us. Crash behind it: nothing happened, and whoever fires next runs it.
 * 2. The run, with its input. Crash behind it: `pending()` lists it, and the same fire again finds it by its id.
 * 3. The mark. From here on the fire is taken, and the lease goes.
 */
async function claimAndRun(
  parts: AgentParts,
  live: LiveRuns,
  schedule: Schedule,
  fire: Fire,
): Promise<ExecutionResult | null> {
  const { checkpoints: store, engine, name } = parts;
  if (store === undefined) return run(parts, live, schedule, fire, nothing);
  const checkpointId = claimIdOf(schedule, fire.atMs);
  try {
    const begun = await exclusively({ checkpointId, store, engine }, async () => {
      if ((await store.load(checkpointId)) !== null) return undefined;
      const begins = begin((onBegun) => run(parts, live, schedule, fire, onBegun));
      await begins.begun;
      await store.save(checkpointId, claimMark(name, engine.ports));
      return begins;
    });
    if (begun === undefined) return null;
    await removeOldMark(parts, schedule, fire);
    return await begun.result;
  } catch (error) {
    if (!isSDKError(error, 'LOUSHO_SESSION_BUSY')) throw error;
    // Another replica claims it right now, or finishes what a crash left of it. A conversation over all fires is busy with something else.
    const isTaken = error.details.sessionId === checkpointId || schedule.sessionId === undefined;
    if (isTaken) return null;
    throw error;
  }
}

/** `begun` resolves when the run is stored, or over. */
function begin(start: (onBegun: () => Promise<void>) => Promise<ExecutionResult>): {
  readonly begun: Promise<unknown>;
  readonly result: Promise<ExecutionResult>;
} {
  let told: () => void = () => undefined;
  const stored = new Promise<void>((resolve) => {
    told = resolve;
  });
  const result = start(async () => told());
  return { begun: Promise.race([stored, result]), result };
}

async function run(
  parts: AgentParts,
  live: LiveRuns,
  schedule: Schedule,
  { atMs, signal }: Fire,
  onBegun: () => Promise<void>,
): Promise<ExecutionResult> {
  const isDurable = parts.checkpoints !== undefined;
  const plan = planInput(parts, live, schedule.input, {
    signal,
    ...(isDurable ? { sessionId: runIdOf(schedule, atMs), inputId: `${schedule.id}@${atMs}` } : undefined),
  });
  const result = await executePlan({ ...plan, onBegun });
  if (result === null) throw new Error('Invariant: a fire gave no result');
  return result;
}

async function nothing(): Promise<void> {
  return undefined;
}

/** Each fire takes the mark of a day before with it: no timer fires as late as that. What it misses is pruned with the finished runs. */
async function removeOldMark(
  { checkpoints }: AgentParts,
  schedule: Schedule,
  { atMs, times }: Fire,
): Promise<void> {
  const oldMs = times(atMs - DAY_MS - 1);
  if (oldMs === undefined || oldMs >= atMs) return;
  try {
    await checkpoints?.delete(claimIdOf(schedule, oldMs));
  } catch {
    // The fire is under way; a mark that is too old harms nobody.
    return undefined;
  }
}
