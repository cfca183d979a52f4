/** One run on explicit wiring: `execute` waits for the result, `stream` gives the handle. An agent is made of the same two. */
import {
  ConfigurationError,
  assertRunId,
  deepFreeze,
  toJson,
  type AgentEvent,
  type AgentInput,
  type AgentRun,
  type ApprovalStore,
  type CheckpointStore,
  type Clock,
  type ExecutionResult,
} from '@lousho/contract';
import { inputMessages } from './accept-input.ts';
import { agentOfDefinition } from './agent-of-definition.ts';
import { executeOrder } from './execute-order.ts';
import { ephemeralCheckpoints } from './ephemeral-store.ts';
import { forkRun, type ForkOptions, type ForkResult } from './fork-run.ts';
import { refuseOption, requireObject, requireText } from './require-option.ts';
import type { AgentSource } from './resolved-agent.ts';
import { RunEvents } from './run-events.ts';
import { startRunHandle } from './run-handle.ts';
import { RunInput } from './run-input.ts';
import {
  resolveEngine,
  type Engine,
  type EngineOptions,
  type ExecuteOptions,
  type InputOptions,
} from './run-options.ts';
import type { RunOrder } from './run-order.ts';
import { RunStop } from './run-stop.ts';

/** Everything of an order but what one execution makes for itself. */
export type OrderPlan = Omit<RunOrder, 'events' | 'input' | 'stop' | 'isStreaming'> & {
  readonly signal: AbortSignal | undefined;
  /** Told of every execution that begins, so that a shutdown can end it. */
  readonly onStart?: ((stop: RunStop) => () => void) | undefined;
  /** Besides the engine's `onEvent`. */
  readonly listeners?: readonly ((event: AgentEvent) => void)[] | undefined;
};

/** The engine with explicit wiring; `createAgent` of `@lousho/core` is made of it. */
export const AgentExecutor = {
  /** @throws what `Agent.send` does. */
  async execute(options: ExecuteOptions): Promise<ExecutionResult> {
    return required(await executePlan(planOf(options)));
  },
  /** Wrong options throw synchronously; later failures reject `result`. */
  stream(options: ExecuteOptions): AgentRun {
    const plan = planOf(options);
    return streamPlan(plan, plan.engine.ports.clock);
  },
  /**
   * A new run that begins with a saved state of another; the source stays as it is. `execute` with `input: []` on its id continues it.
   * @throws LOUSHO_CHECKPOINT_NOT_FOUND, LOUSHO_SESSION_EXISTS, LOUSHO_SESSION_ID_INVALID, LOUSHO_CONFIG_INVALID (no history, wrong patch)
   */
  async fork({
    sessionId,
    checkpointStore: store,
    ports,
    lease,
    ...options
  }: ExecutorForkOptions): Promise<ForkResult> {
    return forkRun({ sessionId, store, engine: resolveEngine({ ports, lease }), options });
  },
};

/** `fork` of the executor: with the store, and what else it is wired to. */
export interface ExecutorForkOptions extends ForkOptions, Pick<EngineOptions, 'ports' | 'lease'> {
  readonly sessionId: string;
  readonly checkpointStore: CheckpointStore;
}

/** `null` when there was nothing to resume. */
export function executePlan(plan: OrderPlan): Promise<ExecutionResult | null> {
  return executeWork(plan.engine.ports.clock, (call) => perform(plan, call));
}

export function streamPlan(plan: OrderPlan | Promise<OrderPlan>, clock: Clock): AgentRun {
  // A plan that is there takes its place in line at once: calls with one id run in the order they were made.
  return streamWork(clock, async (call) => perform(plan instanceof Promise ? await plan : plan, call));
}

/** One call of an application: it may take several orders until one of them is the run that answers it. */
export interface ApplicationCall {
  readonly stop: RunStop;
  readonly input: RunInput;
  /** Whoever reads the handle; `undefined` when there is none. */
  readonly sink: ((event: AgentEvent) => void) | undefined;
}

/** Leaves no timer, no listener and no open input behind. */
export async function executeWork<Value>(
  clock: Clock,
  work: (call: ApplicationCall) => Promise<Value>,
): Promise<Value> {
  const parts = { stop: new RunStop(clock), input: new RunInput() };
  try {
    return await work({ ...parts, sink: undefined });
  } finally {
    parts.input.close();
    parts.stop.dispose();
  }
}

/** `executeWork` with a handle on it. */
export function streamWork(
  clock: Clock,
  work: (call: ApplicationCall) => Promise<ExecutionResult | null>,
): AgentRun {
  const parts = { stop: new RunStop(clock), input: new RunInput() };
  return startRunHandle(parts, async (sink) => {
    try {
      return required(await work({ ...parts, sink }));
    } finally {
      parts.input.close();
      parts.stop.dispose();
    }
  });
}

/** Executes one order of a call. `null` when there was nothing to do for it. */
export async function perform(
  plan: OrderPlan,
  { stop, input, sink }: ApplicationCall,
): Promise<ExecutionResult | null> {
  const { engine, listeners = [] } = plan;
  const sinks = [engine.onEvent, ...listeners, sink].filter((listener) => listener !== undefined);
  const onEnd = plan.onStart?.(stop);
  stop.follow(plan.signal);
  try {
    return await executeOrder({
      ...plan,
      stop,
      input,
      events: new RunEvents(sinks, engine.ports.clock),
      isStreaming: sink !== undefined,
    });
  } finally {
    onEnd?.();
  }
}

/** A send always has a result; only a resume may find nothing. */
function required(result: ExecutionResult | null): ExecutionResult {
  if (result === null) throw new ConfigurationError('LOUSHO_INPUT_EMPTY', {});
  return result;
}

/** One input of a caller, with where it goes and who answers it. */
export interface SendPlan extends InputOptions {
  readonly input: AgentInput;
  readonly sessionId?: string | undefined;
  readonly store?: CheckpointStore | undefined;
  readonly approvals?: ApprovalStore | undefined;
  readonly source: AgentSource;
  readonly engine: Engine;
}

/** @throws synchronously LOUSHO_SESSION_ID_INVALID, LOUSHO_CONFIG_*, LOUSHO_INPUT_EMPTY */
export function planSend(send: SendPlan): OrderPlan {
  const { sessionId, store, engine } = send;
  if (sessionId !== undefined) assertRunId(sessionId);
  if (sessionId !== undefined && store === undefined) {
    throw new ConfigurationError('LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE', {
      operation: `A run with a sessionId ("${sessionId}")`,
    });
  }
  if (sessionId === undefined && send.inputId !== undefined)
    refuseOption(
      'inputId',
      send.inputId,
      'given with a sessionId: without one, no retry finds what was sent',
    );
  const messages = inputMessages(send.input);
  const { metadata, principal, businessState } = storableOptions(send);
  const isDurable = sessionId !== undefined && store !== undefined;
  if (!isDurable && messages.length === 0) throw new ConfigurationError('LOUSHO_INPUT_EMPTY', {});
  return {
    checkpointId: sessionId ?? `run-${engine.ports.ids.random()}`,
    sessionId,
    request: { type: 'send', messages, inputId: send.inputId },
    store: isDurable ? store : ephemeralCheckpoints(),
    isEphemeral: !isDurable,
    approvals: send.approvals,
    source: send.source,
    engine,
    metadata,
    principal,
    businessState,
    signal: send.signal,
    whenBusy: 'wait',
    leaseWaitMs: 0,
  };
}

function planOf(options: ExecuteOptions): OrderPlan {
  const { agent, provider, toolRegistry, checkpointStore: store, approvalStore: approvals } = options;
  return planSend({
    ...options,
    store,
    approvals,
    source: agentOfDefinition(agent, provider, toolRegistry),
    engine: resolveEngine(options),
  });
}

/** What of the options is stored with the run: only what can be read again. @throws LOUSHO_CONFIG_INVALID by name */
function storableOptions(
  options: InputOptions,
): Pick<InputOptions, 'metadata' | 'principal' | 'businessState'> {
  const { inputId, signal } = options;
  if (inputId !== undefined) requireText('inputId', inputId);
  if (signal !== undefined && !isAbortSignal(signal)) refuseOption('signal', signal, 'an AbortSignal');
  const metadata = storable('metadata', options.metadata);
  if (metadata !== undefined) requireObject('metadata', metadata);
  const principal = storable('principal', options.principal);
  if (principal !== undefined) {
    requireObject('principal', principal, 'an object with an id');
    requireText('principal.id', principal.id);
  }
  return { metadata, principal, businessState: storable('businessState', options.businessState) };
}

/** By its shape: a signal of another realm is one, too. */
function isAbortSignal(signal: unknown): boolean {
  const { aborted, addEventListener } = (signal ?? {}) as {
    readonly aborted?: unknown;
    readonly addEventListener?: unknown;
  };
  return typeof aborted === 'boolean' && typeof addEventListener === 'function';
}

/** A frozen JSON copy. @throws LOUSHO_CONFIG_INVALID with the path of what JSON cannot say */
function storable<Value>(option: string, value: Value | undefined): Value | undefined {
  if (value === undefined) return undefined;
  const json = toJson(value);
  if (!json.ok)
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: json.path === '' ? option : `${option}.${json.path}`,
      want: 'JSON',
    });
  return deepFreeze(json.json) as Value;
}
