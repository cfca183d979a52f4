/** What a seed chooses before anything happens: the machines, who says what, and what strikes when. */
import { seededRandom, type SeededRandom } from '../conformance/seeded-random.ts';
import { trueClock, type ClockFacts } from './virtual-clock.ts';

export interface MachinePlan {
  readonly clock: ClockFacts;
  readonly recoverEveryMs: number;
}
export interface InputPlan {
  readonly inputId: string;
  readonly text: string;
  readonly atMs: number;
  /** How many people send it: the same message delivered more than once. */
  readonly senders: number;
  /** `stream` holds the handle, and says more into the run. */
  readonly door: 'send' | 'stream' | 'once';
  /** A person stops the run so long behind the first send. */
  readonly abortAfterMs: number | undefined;
  /** Said into the run while it goes on. */
  readonly more: readonly {
    readonly text: string;
    readonly afterMs: number;
    readonly way: 'enqueue' | 'steer';
  }[];
}
export interface ConversationPlan {
  readonly id: string;
  readonly kind: 'run' | 'session';
  readonly inputs: readonly InputPlan[];
}
type BlowKind =
  /** The process dies and is started again. */
  | 'kill'
  /** It is stopped and goes on. */
  | 'stall'
  /** Its machine sleeps. */
  | 'suspend'
  /** It says goodbye and is started again. */
  | 'leave'
  /** The wall clock is set. */
  | 'jump'
  /** Many calls of the store fail. */
  | 'store fails'
  /** Calls of the store take longer than a lease. */
  | 'store is slow';
export interface Blow {
  readonly kind: BlowKind;
  readonly atMs: number;
  readonly forMs: number;
  readonly machine: number;
}
/** What may happen to a single call while faults last, as a share of all. */
interface Weather {
  readonly storeFails: number;
  readonly storeIsSlow: number;
  readonly modelFails: number;
}
export interface WorldPlan {
  readonly machines: readonly MachinePlan[];
  /** Each machine decides about leases by its own clock, or the store does. */
  readonly hasOwnClocks: boolean;
  readonly conversations: readonly ConversationPlan[];
  readonly blows: readonly Blow[];
  readonly weather: Weather;
  readonly toolConcurrency: number | 'unbounded';
  /** Providers that count the calls of each response give the same ids again and again. */
  readonly repeatsCallIds: boolean;
}

/** From then on nothing fails any more, and everything must come to its end. */
export const FAULTS_END_MS = 240_000;

export function planWorld(seed: number): WorldPlan {
  const random = seededRandom(seed);
  const hasOwnClocks = random.chance(0.4);
  const machineCount = 2 + random.below(2);
  const machines = Array.from({ length: machineCount }, () => planMachine(random, hasOwnClocks));
  const calm = random.chance(0.15);
  return {
    machines,
    hasOwnClocks,
    conversations: Array.from({ length: 1 + random.below(2) }, (_, index) => planConversation(random, index)),
    blows: calm ? [] : planBlows(random, machineCount, hasOwnClocks),
    weather: calm
      ? { storeFails: 0, storeIsSlow: 0, modelFails: 0 }
      : {
          storeFails: random.pick([0, 0.01, 0.05]),
          storeIsSlow: random.pick([0, 0.005, 0.02]),
          modelFails: random.pick([0, 0.05]),
        },
    toolConcurrency: random.pick([1, 2, 'unbounded', 'unbounded']),
    repeatsCallIds: random.chance(0.3),
  };
}

/** Clocks of machines that decide about leases differ by less than a lease period (N6); where the store has the clock they may be anything. */
function planMachine(random: SeededRandom, hasOwnClocks: boolean): MachinePlan {
  const spread = (most: number): number => (random.below(2_001) / 1_000 - 1) * most;
  const clock = random.chance(0.2)
    ? trueClock
    : hasOwnClocks
      ? { aheadMs: spread(10_000), rate: 1 + spread(0.0003) }
      : { aheadMs: spread(86_400_000), rate: 1 + spread(0.05) };
  return { clock, recoverEveryMs: random.pick([10_000, 20_000, 30_000]) };
}

function planConversation(random: SeededRandom, index: number): ConversationPlan {
  const kind = random.pick(['run', 'run', 'session'] as const);
  const id = `${kind === 'run' ? 'run' : 'chat'}-${index + 1}`;
  const isOnce = kind === 'run' && random.chance(0.15);
  let atMs = random.below(40_000);
  const inputs = Array.from({ length: isOnce ? 1 : 1 + random.below(3) }, (_, at): InputPlan => {
    atMs += random.below(50_000);
    const door = isOnce ? 'once' : random.pick(['send', 'send', 'stream'] as const);
    const text = `${id}: input ${at + 1}`;
    const words = door === 'stream' ? random.below(3) : 0;
    return {
      ...{ inputId: `${id}-${at + 1}`, text, atMs, door },
      senders: random.pick([1, 1, 2, 3]),
      abortAfterMs: random.chance(0.15) ? random.below(15_000) : undefined,
      more: Array.from({ length: words }, (_word, count) => ({
        text: `${text}, more ${count + 1}`,
        afterMs: random.below(10_000),
        way: random.pick(['enqueue', 'steer'] as const),
      })),
    };
  });
  return { id, kind, inputs };
}

function planBlows(random: SeededRandom, machineCount: number, hasOwnClocks: boolean): readonly Blow[] {
  const kinds: readonly BlowKind[] = [
    ...(['kill', 'kill', 'kill', 'stall', 'stall', 'suspend', 'leave'] as const),
    ...(['store fails', 'store is slow'] as const),
    ...(hasOwnClocks ? [] : (['jump'] as const)),
  ];
  const blows = Array.from({ length: 1 + random.below(10) }, (): Blow => {
    const atMs = random.below(FAULTS_END_MS - 10_000);
    const longest = Math.min(random.pick([2_000, 20_000, 100_000]), FAULTS_END_MS - atMs);
    return {
      kind: random.pick(kinds),
      atMs,
      forMs: random.below(longest),
      machine: random.below(machineCount),
    };
  });
  return blows.sort((a, b) => a.atMs - b.atMs);
}
