/** One seed, one story: N processes over one store, struck by what the seed chooses, checked at every step and at the end. */
import {
  ConfigurationError,
  requireKnownOptions,
  type Checkpoint,
  type Message,
  type OptionNames,
} from '@lousho/contract';
import { decide, openConversations, talk, untilOver, type Given } from './actors.ts';
import { LIVENESS, NO_CRASH, type BrokenPromise } from './checker.ts';
import { orderHashes } from './hash-order.ts';
import { goodbye, strike } from './nemesis.ts';
import { planWorld, type Blow, type ConversationPlan, type WorldPlan } from './plan.ts';
import type { ConversationEnd } from './rules/end-rules.ts';
import { World, type CreateSimulatedAgent, type CreateSimulatedStore } from './world.ts';

export interface SimulationOptions {
  /** A whole number. The same seed is the same story. */
  readonly seed: number;
  /** `createAgent` of `@lousho/core`. */
  readonly createAgent: CreateSimulatedAgent;
  /** Empty storage that all processes share, measured by the clock of `ports`. It may wait for nothing but that clock. In some worlds the machines decide about its leases by their own clocks. Default: the plainest store. */
  readonly createStore?: CreateSimulatedStore | undefined;
  /** Whether a failure is told again with as few blows as still bring it about. Default `true`. */
  readonly shrink?: boolean | undefined;
}
export interface SimulationReport {
  readonly seed: number;
  /** The first promise that was broken. */
  readonly broken?: BrokenPromise | undefined;
  /** What was needed to break it. */
  readonly blows: readonly Blow[];
  /** What happened, a line each. */
  readonly trace: readonly string[];
}

/** Behind the end of the faults. The longest back-off of `recover()` is an hour. */
const MOST_MS = 3 * 3_600_000;

const everyOption: OptionNames<SimulationOptions> = {
  seed: true,
  createAgent: true,
  createStore: true,
  shrink: true,
};

/** Resolves with what it found. One at a time in a realm: hashes are put in order meanwhile. @throws LOUSHO_CONFIG_INVALID */
export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  requireKnownOptions('', options, everyOption);
  const { seed, shrink: isToShrink = true } = options;
  if (!Number.isSafeInteger(seed))
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'seed',
      got: seed,
      want: 'a whole number',
    });
  const plan = planWorld(seed);
  const report = await live(options, plan);
  return report.broken === undefined || !isToShrink ? report : shrink(options, plan, report);
}

/** Leaves out one blow after the other, as long as the same promise is broken. */
async function shrink(
  options: SimulationOptions,
  plan: WorldPlan,
  found: SimulationReport,
): Promise<SimulationReport> {
  let smallest = found;
  for (const blow of plan.blows) {
    const blows = smallest.blows.filter((other) => other !== blow);
    const report = await live(options, { ...plan, blows });
    if (report.broken?.promise === found.broken?.promise) smallest = report;
  }
  return smallest;
}

async function live(
  { seed, createAgent, createStore }: SimulationOptions,
  plan: WorldPlan,
): Promise<SimulationReport> {
  const hashes = orderHashes();
  try {
    const world = new World({ seed, plan, createAgent, createStore, hashes });
    await tell(world);
    return { seed, broken: world.checker.broken, blows: plan.blows, trace: world.trace.lines };
  } finally {
    hashes.end();
  }
}

async function tell(world: World): Promise<void> {
  const { plan, checker, time } = world;
  strike(world, plan.blows);
  const given = plan.conversations.map((): Given => ({ results: [], joined: new Set() }));
  let isOver = false;
  void decide(world, () => isOver);
  const talks = plan.conversations.map((conversation, index) =>
    talk(world, conversation, given[index] as Given),
  );
  let hasSaidAll = false;
  void Promise.all(talks).then(() => (hasSaidAll = true));
  void untilOver(world, () => hasSaidAll)
    .then(() => openConversations(world))
    .then(() => everybodyLeaves(world))
    .then(() => (isOver = true));
  while (!isOver && checker.broken === undefined) {
    try {
      if (!(await time.step())) throw new Error('Nothing is ahead, and it is not over.');
    } catch (error) {
      checker.break(NO_CRASH, String((error as Error).stack ?? error));
    }
    if (time.nowMs > MOST_MS) checker.break(LIVENESS, await describeWaiting(world));
  }
  if (checker.broken === undefined) checker.atTheEnd(await endOf(world, given));
}

/** Long enough for a heartbeat and for a look of `recover()`. */
const LINGER_MS = 35_000;

async function everybodyLeaves(world: World): Promise<void> {
  for (const { running } of world.machines) await goodbye(world, running);
  await world.time.sleep(LINGER_MS);
}

async function describeWaiting({ store }: World): Promise<string> {
  const entries = (await store.checkpoints?.list?.()) ?? [];
  const waiting = entries.filter(({ status }) => status !== 'finished');
  return `It does not end; waiting: ${waiting.map(({ sessionId, status }) => `${sessionId} (${status})`).join(', ') || 'callers'}.`;
}

async function endOf(world: World, given: readonly Given[]) {
  const { plan, store } = world;
  const conversations: ConversationEnd[] = [];
  for (const [index, conversation] of plan.conversations.entries()) {
    const checkpoint = (await store.checkpoints?.load(conversation.id)) ?? undefined;
    const messages = await messagesOf(store, conversation, checkpoint);
    conversations.push({ plan: conversation, messages, checkpoint, ...(given[index] as Given) });
  }
  // What could not be removed in time is collected, and then nothing is left at all.
  if (store.prune !== undefined) await pruneAll(world);
  else if (mayHaveKept(plan)) return { conversations, checkpointIds: [], approvalIds: [] };
  return {
    conversations,
    checkpointIds: ((await store.checkpoints?.list?.()) ?? []).map(({ sessionId }) => sessionId),
    approvalIds: ((await store.approvals?.list()) ?? []).map(({ id }) => id),
  };
}

/** Longer than clocks differ. */
const LATER_MS = 4 * 86_400_000;

async function pruneAll({ time, store }: World): Promise<void> {
  let isLater = false;
  void time.sleep(LATER_MS).then(() => (isLater = true));
  while (!isLater) await time.step();
  await store.prune?.({ olderThanMs: 0 });
}

/** A store that failed kept what it was to remove. */
function mayHaveKept({ weather, blows }: WorldPlan): boolean {
  return weather.storeFails > 0 || blows.some(({ kind }) => kind === 'store fails');
}

async function messagesOf(
  store: World['store'],
  { id, kind }: ConversationPlan,
  checkpoint: Checkpoint | undefined,
): Promise<readonly Message[]> {
  if (kind === 'run') return checkpoint?.messages ?? [];
  return (await store.sessions?.load(id))?.messages ?? [];
}
