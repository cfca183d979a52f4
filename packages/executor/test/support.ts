/** Worlds for tests of the engine: a store that outlives processes, a scripted model, tools that note what they did, and time moved by hand. */
import {
  SDKError,
  defineTool,
  resultOf,
  type AgentEvent,
  type AgentInput,
  type AgentRun,
  type AgentStore,
  type ApprovalDecision,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointStore,
  type Clock,
  type ErrorCode,
  type ExecutionResult,
  type InProgressCheckpoint,
  type JsonValue,
  type LLMProvider,
  type Message,
  type Ports,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolResultPart,
} from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { crashingStore, type CrashPoint, type CrashingStore } from '@lousho/testing/crash';
import {
  manualClock,
  mockModel,
  testPorts,
  type ManualClock,
  type MockModel,
  type MockResponse,
} from '@lousho/testing';
import { z } from 'zod';
import { agentOfDefinition } from '../src/agent-of-definition.ts';
import {
  AgentExecutor,
  ToolRegistry,
  resumeAfterApproval,
  streamAfterApproval,
  type AgentDefinition,
  type ExecuteOptions,
} from '../src/index.ts';
import { executePlan, resolveEngine } from '../src/wiring.ts';
import { watchedStore, type WatchedStore } from './watched-store.ts';

export const RUN_ID = 'order-7';

/** What stays when a process dies. */
export interface Storage {
  readonly clock: ManualClock;
  readonly store: WatchedStore;
  /** Names of the tools that began, over all processes, in order. */
  readonly effects: string[];
}

export function givenStorage(base?: (ports: Ports) => AgentStore): Storage {
  const clock = manualClock();
  const store = base?.(testPorts(clock)) ?? memoryStore({ ports: testPorts(clock) });
  return { clock, store: watchedStore(store), effects: [] };
}

export interface Setup extends Partial<
  Omit<ExecuteOptions, 'agent' | 'input' | 'toolRegistry' | 'checkpointStore' | 'approvalStore'>
> {
  readonly storage?: Storage;
  readonly script?: readonly MockResponse[];
  readonly tools?: readonly Tool[];
  readonly agent?: AgentDefinition;
  /** `false`: the run has no checkpoint store, only an inbox. */
  readonly isDurable?: boolean;
  /** This process's own view of the store. */
  readonly store?: AgentStore;
  /** The process dies at this store call: it and all later ones never settle, and its timers never fire. */
  readonly diesAt?: CrashPoint;
}

/** Longer than a lease: whoever comes then may take the run over. */
const AFTER_A_CRASH_MS = 10 * 60_000;

/** One process with one agent. A new process over the same storage is `world.onNewProcess(...)`. */
export class World {
  readonly storage: Storage;
  readonly model: MockModel;
  readonly ports: Ports;
  readonly events: AgentEvent[] = [];
  readonly #setup: Setup;
  readonly #process: CrashingStore;

  constructor(setup: Setup = {}) {
    this.#setup = setup;
    this.storage = setup.storage ?? givenStorage();
    this.#process = crashingStore(setup.store ?? this.storage.store, { point: setup.diesAt });
    const ports = testPorts(this.storage.clock);
    this.ports = { ...ports, clock: this.#processClock() };
    this.model = mockModel(setup.script ?? [], { clock: this.storage.clock });
  }

  get clock(): ManualClock {
    return this.storage.clock;
  }
  get checkpoints(): CheckpointStore {
    return need(this.#process.store.checkpoints);
  }
  get approvals(): ApprovalStore {
    return need(this.#process.store.approvals);
  }
  get isDead(): boolean {
    return this.#process.isDead;
  }
  get provider(): LLMProvider {
    return this.#setup.provider ?? this.model;
  }

  options(more: Partial<ExecuteOptions> = {}): Omit<ExecuteOptions, 'input'> {
    const { tools, isDurable = true, ...setup } = this.#setup;
    const { storage: _storage, script: _script, store: _store, diesAt: _diesAt, ...rest } = setup;
    return {
      agent: {},
      ...rest,
      provider: this.provider,
      toolRegistry: new ToolRegistry(tools ?? []),
      approvalStore: this.approvals,
      ...(isDurable ? { checkpointStore: this.checkpoints, sessionId: RUN_ID } : undefined),
      ports: this.ports,
      ...more,
      onEvent: (event) => {
        this.events.push(event);
        (more.onEvent ?? rest.onEvent)?.(event);
      },
    };
  }

  send(input: AgentInput, more: Partial<ExecuteOptions> = {}): Promise<ExecutionResult> {
    return AgentExecutor.execute({ ...this.options(more), input });
  }

  stream(input: AgentInput, more: Partial<ExecuteOptions> = {}): AgentRun {
    return AgentExecutor.stream({ ...this.options(more), input });
  }

  /** As `agent.resume` does: continues what is unfinished, or gives `null`. */
  async resume(more: Partial<ExecuteOptions> = {}): Promise<ExecutionResult | null> {
    const options = this.options(more);
    return executePlan({
      checkpointId: RUN_ID,
      sessionId: RUN_ID,
      request: { type: 'resume' },
      store: this.checkpoints,
      isEphemeral: false,
      approvals: this.approvals,
      source: agentOfDefinition(options.agent, options.provider, options.toolRegistry),
      engine: resolveEngine(options),
      signal: options.signal,
      whenBusy: 'refuse',
      leaseWaitMs: 0,
    });
  }

  decide(decision: ApprovalDecision, more: Partial<ExecuteOptions> = {}): Promise<ExecutionResult> {
    return resumeAfterApproval(...this.#decision(decision, more));
  }

  streamDecide(decision: ApprovalDecision, more: Partial<ExecuteOptions> = {}): AgentRun {
    return streamAfterApproval(...this.#decision(decision, more));
  }

  /** The same storage; what the setup does not name stays as it was. */
  onNewProcess(setup: Partial<Setup> = {}): World {
    const { diesAt: _diesAt, ...same } = this.#setup;
    return new World({ ...same, storage: this.storage, ...setup });
  }

  /** This process dies now, if it did not yet; the new one finds its lease run out. */
  async afterCrash(setup: Partial<Setup> = {}): Promise<World> {
    this.#process.kill();
    await this.clock.advance(AFTER_A_CRASH_MS);
    return this.onNewProcess(setup);
  }

  /** Runs until this process is dead. */
  async untilDead(work: Promise<unknown>): Promise<void> {
    let end: unknown;
    work.then(
      () => (end = 'it ended'),
      (error: unknown) => (end = error),
    );
    await until(() => this.isDead || end !== undefined);
    if (!this.isDead) throw new Error('The process lives.', { cause: end });
  }

  /** The end of work that waits for time to pass. */
  async letTimePass<Value>(work: Promise<Value>, stepMs = 500): Promise<Value> {
    let isOver = false;
    const end = (): void => void (isOver = true);
    work.then(end, end);
    for (let turn = 0; !isOver; turn += 1) {
      if (turn > 5_000) throw new Error('It does not end.');
      await hashesInFlight();
      await this.clock.advance(stepMs);
    }
    return work;
  }

  async stored(): Promise<Checkpoint | undefined> {
    return (await need(this.storage.store.checkpoints).load(RUN_ID)) ?? undefined;
  }

  async unfinished(): Promise<InProgressCheckpoint> {
    const stored = await this.stored();
    if (stored?.status !== 'in-progress') throw new Error(`Stored: ${stored?.status ?? 'nothing'}`);
    return stored;
  }

  async inbox(): Promise<readonly string[]> {
    return (await need(this.storage.store.approvals).list()).map(({ id }) => id);
  }

  timesRun(toolName: string): number {
    return this.storage.effects.filter((name) => name === toolName).length;
  }

  eventTypes(): readonly string[] {
    return this.events.filter(({ type }) => type !== 'checkpoint.saved').map(({ type }) => type);
  }

  #processClock(): Clock {
    const machine = this.storage.clock;
    return {
      wallMs: () => machine.wallMs(),
      monotonicMs: () => machine.monotonicMs(),
      setTimer: (callback, delayMs) => machine.setTimer(() => this.isDead || callback(), delayMs),
    };
  }

  #decision(decision: ApprovalDecision, more: Partial<ExecuteOptions>) {
    const { toolRegistry, provider, checkpointStore, ...options } = this.options(more);
    const { agent: _agent, ...withoutAgent } = options;
    return [
      decision,
      this.approvals,
      need(toolRegistry),
      provider,
      this.#setup.agent === undefined ? withoutAgent : options,
      checkpointStore,
    ] as const;
  }
}

export function givenWorld(setup: Setup = {}): World {
  return new World(setup);
}

/* ── Tools ── */

type Body = (args: JsonValue, ctx: ToolContext) => unknown;

/** Notes that it began, then does what `body` says. */
export function noting(
  storage: Storage,
  name: string,
  body: Body = () => `${name} done`,
  more: Partial<ToolDefinition<z.ZodType, unknown>> = {},
): Tool {
  const defined = defineTool<z.ZodType, unknown>({
    name,
    description: `Does ${name}.`,
    input: z.looseObject({}),
    ...more,
    execute(args: unknown, ctx: ToolContext) {
      storage.effects.push(name);
      return body(args as JsonValue, ctx);
    },
  });
  return defined;
}

/** A response that calls these tools, each with its own arguments if some are given. */
export function calling(...names: readonly (string | readonly [string, JsonValue])[]): MockResponse {
  return {
    toolCalls: names.map((item) => {
      const [name, args] = typeof item === 'string' ? [item, {}] : item;
      return { name, args, id: `call_${name}` };
    }),
  };
}

/** A promise that the test settles. */
export interface Deferred<Value = void> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
  reject(error: unknown): void;
}

export function deferred<Value = void>(): Deferred<Value> {
  let settle: Omit<Deferred<Value>, 'promise'> | undefined;
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...need(settle) };
}

/** The engine hashes on another thread: time must not run away while it waits for that. What is asked later is answered later. */
async function hashesInFlight(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    await crypto.subtle.digest('SHA-256', new Uint8Array(1));
  }
}

/** So many turns pass in a moment: on a busy machine the thread that hashes may not even have begun. */
const UNTIL_MS = 10_000;

/** Without time passing. Hashing happens on another thread, so a fixed number of turns would be luck. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + UNTIL_MS;
  for (let turn = 0; !(await condition()); turn += 1) {
    if (turn > 100_000 && performance.now() > giveUpAtMs) throw new Error('It never comes.');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/* ── Looking at what came of it ── */

/** `user assistant tool ...` */
export function roles(messages: readonly Message[] = []): string {
  return messages.map(({ role }) => role).join(' ');
}

export function results(messages: readonly Message[] = []): readonly ToolResultPart[] {
  return messages.map(resultOf).filter((result) => result !== undefined);
}

export function resultIds(messages: readonly Message[] = []): readonly string[] {
  return results(messages).map(({ toolCallId }) => toolCallId);
}

export function resultFor(messages: readonly Message[] | undefined, toolName: string): ToolResultPart {
  const found = results(messages).filter((result) => result.toolName === toolName);
  if (found.length !== 1) throw new Error(`${found.length} results of ${toolName}`);
  return need(found[0]);
}

/** What the promise rejects with, which must have this code. */
export async function refusal(promise: Promise<unknown>, code: ErrorCode): Promise<SDKError> {
  const error: unknown = await promise.then(
    (value) => new Error(`It resolved: ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof SDKError && error.code === code) return error;
  throw new Error(`Not refused with ${code}`, { cause: error });
}

export function need<Value>(value: Value | undefined | null): Value {
  if (value === undefined || value === null) throw new Error('It is not there.');
  return value;
}
