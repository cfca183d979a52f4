/** One store, the machines around it and the processes that run on them: what actors and the nemesis act on. */
import type { AgentStore } from '@lousho/contract';
import { seededRandom, type SeededRandom } from '../conformance/seeded-random.ts';
import { referenceStore } from '../reference-store.ts';
import { agentConfig, AGENT_NAME } from './agent-of-process.ts';
import { Checker, GOODBYE } from './checker.ts';
import type { HashOrder } from './hash-order.ts';
import { withOwnClockLeases, type SharedLeases } from './own-clock-leases.ts';
import { FAULTS_END_MS, type MachinePlan, type WorldPlan } from './plan.ts';
import { remoteStore, type CallFate } from './remote-store.ts';
import { describeError, type Told } from './rules/caller-rules.ts';
import type { SimulatedAgent, SimulatedAgentConfig } from './simulated-agent.ts';
import { Trace } from './trace.ts';
import { TrueTime } from './true-time.ts';
import { trueClock, VirtualClock } from './virtual-clock.ts';
import { VirtualProcess } from './virtual-process.ts';

export type CreateSimulatedAgent = (config: SimulatedAgentConfig) => SimulatedAgent;
export type CreateSimulatedStore = (ports: VirtualProcess['ports']) => AgentStore;

export interface WorldOptions {
  readonly seed: number;
  readonly plan: WorldPlan;
  readonly createAgent: CreateSimulatedAgent;
  readonly createStore: CreateSimulatedStore | undefined;
  readonly hashes: HashOrder;
}
export interface Machine {
  readonly index: number;
  readonly plan: MachinePlan;
  readonly clock: VirtualClock;
  running: RunningProcess;
}
export interface RunningProcess {
  readonly process: VirtualProcess;
  readonly agent: SimulatedAgent;
  /** Says goodbye, or has done so. */
  isLeaving: boolean;
}
export type Outcome<Value> =
  | { readonly type: 'resolved'; readonly value: Value }
  | { readonly type: 'rejected'; readonly error: unknown }
  /** The process died, or the caller waited long enough. */
  | { readonly type: 'silence' };

/** How long the caller of a process that does not answer waits. */
const PATIENCE_MS = 120_000;

export class World {
  readonly time: TrueTime;
  readonly random: SeededRandom;
  readonly trace: Trace;
  readonly checker = new Checker();
  readonly plan: WorldPlan;
  /** Without the network in front of it. */
  readonly store: AgentStore;
  readonly machines: readonly Machine[];
  /** The share of calls that fail, and that are slow, besides the usual. */
  readonly trouble = { fails: 0, slow: 0 };
  readonly #options: WorldOptions;
  readonly #leases: SharedLeases = new Map();
  readonly #startCounts: number[] = [];
  #opCount = 0;
  #opsUnderWay = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.plan = options.plan;
    this.time = new TrueTime(options.hashes);
    this.trace = new Trace(this.time);
    this.random = seededRandom(~options.seed);
    const server = new VirtualProcess('zz', 'store', this.time, new VirtualClock(this.time, trueClock));
    this.store = options.createStore?.(server.ports) ?? referenceStore({ clock: server.ports.clock });
    this.machines = options.plan.machines.map((plan, index) => {
      const clock = new VirtualClock(this.time, plan.clock);
      return { index, plan, clock, running: this.#start(index, plan, clock) };
    });
  }

  get isCalm(): boolean {
    return this.time.nowMs >= FAULTS_END_MS;
  }

  get isBusy(): boolean {
    return this.#opsUnderWay > 0;
  }

  /** A new process on this machine, in place of the one before. */
  restart(machine: Machine): void {
    machine.running = this.#start(machine.index, machine.plan, machine.clock);
  }

  /** One that would take a request now. */
  anyRunning(): RunningProcess | undefined {
    const open = this.machines.filter(({ running: { process, isLeaving } }) => process.isAlive && !isLeaving);
    return open.length === 0 ? undefined : this.random.pick(open).running;
  }

  /** A request of somebody outside. `about`: what the checker should know of it. */
  async request<Value>(
    { process }: RunningProcess,
    what: string,
    work: (op: string) => Promise<Value>,
    about: Pick<Told, 'approvalId'> = {},
  ): Promise<Outcome<Value>> {
    const op = `${process.name}-${(this.#opCount += 1)}`;
    const outcome = await new Promise<Outcome<Value>>((resolve) => {
      const told = (heard: Exclude<Outcome<Value>, { type: 'silence' }>): void => {
        this.#opsUnderWay -= 1;
        if (process.isAlive) this.#tellChecker(op, what, heard, about);
        resolve(heard);
      };
      const silence = (): void => resolve({ type: 'silence' });
      process.onDeath(() => {
        this.#opsUnderWay -= 1;
        silence();
      });
      this.#opsUnderWay += 1;
      this.time.in(PATIENCE_MS, silence);
      this.time.in(this.random.below(20), () =>
        process.deliver(() => {
          this.trace.note(op, what);
          // Async: what throws at once is an answer, too.
          void (async () => work(op))().then(
            (value) => told({ type: 'resolved', value }),
            (error: unknown) => told({ type: 'rejected', error }),
          );
        }),
      );
    });
    await this.time.sleep(this.random.below(20));
    return outcome;
  }

  #tellChecker<Value>(
    op: string,
    what: string,
    heard: Exclude<Outcome<Value>, { type: 'silence' }>,
    about: Pick<Told, 'approvalId'>,
  ): void {
    this.trace.note(op, `${what}: ${heard.type === 'resolved' ? 'done' : describeError(heard.error)}`);
    const outcome = heard.type === 'resolved' ? { type: 'resolved' as const } : heard;
    this.checker.told({ op, outcome, ...about });
  }

  #start(index: number, plan: MachinePlan, clock: VirtualClock): RunningProcess {
    const count = (this.#startCounts[index] ?? 0) + 1;
    this.#startCounts[index] = count;
    const name = `${String.fromCharCode(97 + index)}${count.toString(36)}`;
    const process = new VirtualProcess(name, `machine ${index}`, this.time, clock);
    const { weather, toolConcurrency, repeatsCallIds, hasOwnClocks } = this.plan;
    const storage = hasOwnClocks
      ? withOwnClockLeases(this.store, this.#leases, process.ports.clock)
      : this.store;
    const store = remoteStore(storage, {
      ...{ time: this.time, process, fateOf: () => this.#fate() },
      begun: ({ method }) => {
        if (process.hasLeft && !/load|list/.test(method))
          this.checker.break(GOODBYE, `${name} asks the store for ${method} behind its goodbye.`);
      },
      landed: (call, result) => {
        this.trace.note(name, `${call.method} ${idOf(call.args[0])} landed${shown(result)}`);
        this.checker.landed(call, result);
      },
      acknowledged: (call) => this.checker.acknowledged(call),
    });
    const config = agentConfig({
      ...{ process, store, checker: this.checker, trace: this.trace, random: this.random, toolConcurrency },
      script: { seed: this.#options.seed, repeatsCallIds },
      modelFails: () => !this.isCalm && this.random.chance(weather.modelFails),
    });
    const agent = this.#options.createAgent(config);
    const running = { process, agent, isLeaving: false };
    this.trace.note(name, `starts ${AGENT_NAME}`);
    this.time.in(this.random.below(1_000), () =>
      process.deliver(() => {
        if (!running.isLeaving) agent.recover({ intervalMs: plan.recoverEveryMs });
      }),
    );
    return running;
  }

  #fate(): CallFate {
    const { random, plan, trouble } = this;
    const share = (usual: number, now: number): number => (this.isCalm ? 0 : Math.max(usual, now));
    const fails = random.chance(share(plan.weather.storeFails, trouble.fails));
    const isSlow = random.chance(share(plan.weather.storeIsSlow, trouble.slow));
    const slowMs = isSlow ? random.below(90_000) : 0;
    const isSlowBack = random.chance(0.5);
    return {
      thereMs: latency(random) + (isSlowBack ? 0 : slowMs),
      backMs: latency(random) + (isSlowBack ? slowMs : 0),
      end: fails ? random.pick(['refused', 'unacknowledged']) : 'answered',
      dies: random.pick(['with its process', 'never']),
    };
  }
}

/** Mostly fast, now and then not. */
function latency(random: SeededRandom): number {
  return random.below(random.pick([1, 3, 3, 40, 400])) + random.below(1_000) / 1_000;
}

function idOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return (value as { readonly id?: string } | undefined)?.id ?? '';
}

function shown(result: unknown): string {
  return typeof result === 'boolean' ? `: ${result}` : '';
}
