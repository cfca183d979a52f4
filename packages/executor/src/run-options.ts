/** The options of `execute` and its like, and what they resolve to: validated once, every default filled in. */
import {
  resolvePorts,
  requireKnownOptions,
  type AgentEvent,
  type AgentHooks,
  type AgentInput,
  type ApprovalStore,
  type CheckpointStore,
  type DriftPolicy,
  type DriftReactions,
  type JsonObject,
  type JsonValue,
  type LLMProvider,
  type ModelSettings,
  type HandoffTarget,
  type Ports,
  type Principal,
  type ProviderTool,
  type RunLimits,
  type SandboxExecute,
  type SubAgent,
  type Telemetry,
} from '@lousho/contract';
import {
  refuseOption,
  requireAbove,
  requireAtLeast,
  requireFunction,
  requireObject,
  requireWholeNumber,
} from './require-option.ts';
import { harmless } from './harmless-telemetry.ts';
import { resolveDriftPolicy, type ResolvedDriftPolicy } from './agent-drift.ts';
import type { SessionLimits } from './next-action.ts';
import type { ToolRegistry } from './tool-registry.ts';

export interface LeaseOptions {
  /** Default 30,000. */
  readonly ttlMs?: number | undefined;
  /** Default 10,000. */
  readonly heartbeatMs?: number | undefined;
}
/** Of failed model calls, inside one step. A run that rejected is a matter of resuming it. */
export interface RetryOptions {
  /** Default 2. */
  readonly maxRetries?: number | undefined;
  /** First delay, doubled each time; `retryAfterMs` of the error wins. Default 1,000. */
  readonly delayMs?: number | undefined;
  /** A longer wait rejects the run instead. Default 30,000. */
  readonly maxDelayMs?: number | undefined;
}
/** Options that one run, an agent and the executor share. */
export interface EngineOptions {
  /** Called with every event; one that throws changes nothing. */
  readonly onEvent?: ((event: AgentEvent) => void) | undefined;
  readonly hooks?: AgentHooks | readonly AgentHooks[] | undefined;
  /** Calls of one step at a time. Default: all of them. */
  readonly toolConcurrency?: number | 'unbounded' | undefined;
  /** Model responses of a run, default 10. The calls of the last one still run. */
  readonly maxSteps?: number | undefined;
  /** Checked before each model call; reaching one ends the run with `limit`. */
  readonly limits?: RunLimits | undefined;
  /** Tasks of one run that are worked on in the background at a time, default 3. The others are queued. */
  readonly maxConcurrentTasks?: number | undefined;
  /** Whether a run that could end waits for its tasks in the background instead of cancelling them. Default `false`. */
  readonly awaitBackgroundOnFinish?: boolean | undefined;
  readonly modelSettings?: ModelSettings | undefined;
  readonly retry?: RetryOptions | undefined;
  /**
   * Asked in turn for a response that the agent's own model fails to give, each with its own retries; the next response is asked of the
   * own model again. No part of the fingerprint. Default: none.
   */
  readonly fallbackModels?: readonly LLMProvider[] | undefined;
  /** Default `'warn'`. `{ model, tools, instructions }` reacts to each part by itself. */
  readonly onAgentDrift?: DriftPolicy | undefined;
  /** Later decisions count as a denial. Default: never. */
  readonly approvalTtlMs?: number | undefined;
  readonly sandboxExecute?: SandboxExecute | undefined;
  /** `false` gives up the protection against two processes on one run. */
  readonly lease?: false | LeaseOptions | undefined;
  readonly telemetry?: Telemetry | undefined;
  readonly ports?: Partial<Ports> | undefined;
}
/** What belongs to one input. */
export interface InputOptions {
  /** Makes a retry exact: an input whose id the session already holds is never added again. Only with a `sessionId`. */
  readonly inputId?: string | undefined;
  /** A person stops the run: it resolves with `aborted` and stays resumable. */
  readonly signal?: AbortSignal | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly principal?: Principal | undefined;
  /** `undefined` keeps the saved one, `null` is a value. */
  readonly businessState?: JsonValue | undefined;
}
/** The agent as plain data; behaviour comes from the registry and the options. */
export interface AgentDefinition {
  /** Default `'agent'`. */
  readonly name?: string | undefined;
  readonly instructions?: string | undefined;
  /** Default: the provider's `modelId`. */
  readonly model?: string | undefined;
  /** Names in the registry. Default: all of it. */
  readonly tools?: readonly string[] | undefined;
  readonly providerTools?: readonly ProviderTool[] | undefined;
  readonly subagents?: readonly SubAgent[] | undefined;
  /** Who may take the conversation over. */
  readonly handoffs?: readonly HandoffTarget[] | undefined;
}
export interface ExecuteOptions extends EngineOptions, InputOptions {
  readonly agent: AgentDefinition;
  readonly input: AgentInput;
  readonly provider: LLMProvider;
  readonly toolRegistry?: ToolRegistry | undefined;
  readonly approvalStore?: ApprovalStore | undefined;
  /** With a `checkpointStore`: the run is durable under this id. */
  readonly sessionId?: string | undefined;
  readonly checkpointStore?: CheckpointStore | undefined;
}

/** `EngineOptions` with every default. Inside the executor nothing of it is optional that decides something. */
export interface Engine {
  readonly onEvent: ((event: AgentEvent) => void) | undefined;
  readonly hooks: readonly AgentHooks[];
  /** `Infinity` for all calls at once. */
  readonly toolConcurrency: number;
  readonly maxSteps: number;
  readonly limits: RunLimits;
  /** Of a turn: what the whole session may spend, and what it had spent before the turn. */
  readonly sessionLimits?: SessionLimits | undefined;
  readonly maxConcurrentTasks: number;
  readonly awaitBackgroundOnFinish: boolean;
  readonly modelSettings: ModelSettings;
  readonly retry: { readonly maxRetries: number; readonly delayMs: number; readonly maxDelayMs: number };
  readonly fallbackModels: readonly LLMProvider[];
  readonly onAgentDrift: ResolvedDriftPolicy;
  readonly approvalTtlMs: number | undefined;
  readonly sandboxExecute: SandboxExecute | undefined;
  readonly lease: { readonly ttlMs: number; readonly heartbeatMs: number } | undefined;
  readonly telemetry: Telemetry;
  readonly ports: Ports;
}

/** A run that nobody traces makes nothing for it. */
const untraced: Telemetry = Object.freeze({});

/** Model responses of a run. */
export const DEFAULT_MAX_STEPS = 10;

/** @throws synchronously LOUSHO_CONFIG_INVALID naming the option. */
export function resolveEngine(options: EngineOptions): Engine {
  const {
    hooks = [],
    toolConcurrency = 'unbounded',
    maxSteps = DEFAULT_MAX_STEPS,
    limits = {},
    maxConcurrentTasks = 3,
    awaitBackgroundOnFinish = false,
    retry = {},
    fallbackModels = [],
    onAgentDrift = 'warn',
  } = options;
  requireWholeNumber('maxSteps', maxSteps, 1);
  requireDriftPolicy(onAgentDrift);
  if (options.approvalTtlMs !== undefined) requireAbove('approvalTtlMs', options.approvalTtlMs, 0);
  requireLimits(limits);
  requireWholeNumber('maxConcurrentTasks', maxConcurrentTasks, 1);
  const whenFinished: unknown = awaitBackgroundOnFinish;
  if (typeof whenFinished !== 'boolean')
    refuseOption('awaitBackgroundOnFinish', whenFinished, 'true or false');
  for (const option of ['onEvent', 'sandboxExecute'] as const)
    if (options[option] !== undefined) requireFunction(option, options[option]);
  for (const option of ['modelSettings', 'telemetry'] as const)
    if (options[option] !== undefined) requireObject(option, options[option]);
  return {
    onEvent: options.onEvent,
    hooks: resolveHooks(hooks),
    toolConcurrency: resolveToolConcurrency(toolConcurrency),
    maxSteps,
    limits,
    maxConcurrentTasks,
    awaitBackgroundOnFinish,
    modelSettings: options.modelSettings ?? {},
    retry: resolveRetry(retry),
    fallbackModels: resolveFallbackModels(fallbackModels),
    onAgentDrift: resolveDriftPolicy(onAgentDrift),
    approvalTtlMs: options.approvalTtlMs,
    sandboxExecute: options.sandboxExecute,
    lease: resolveLease(options.lease),
    telemetry: options.telemetry === undefined ? untraced : harmless(options.telemetry),
    ports: resolvePorts(options.ports),
  };
}

/** `Infinity` for all calls at once. @throws synchronously LOUSHO_CONFIG_INVALID */
export function resolveToolConcurrency(
  given: number | 'unbounded',
  option = 'toolConcurrency',
): Engine['toolConcurrency'] {
  if (given === 'unbounded') return Infinity;
  requireWholeNumber(option, given, 1, "a whole number, 1 or more, or 'unbounded'");
  return given;
}

const everyLimit: { readonly [Name in keyof RunLimits]-?: true } = {
  maxTotalTokens: true,
  maxModelCalls: true,
  maxToolCalls: true,
  maxCostUsd: true,
};

/** A limit that nobody knows would limit nothing, so its name is refused. */
export function requireLimits(limits: RunLimits, option = 'limits'): void {
  requireObject(option, limits);
  for (const [name, max] of Object.entries(limits) as [string, unknown][]) {
    const names = Object.keys(everyLimit);
    if (!names.includes(name)) refuseOption(`${option}.${name}`, max, `one of ${names.join(', ')}`);
    if (max !== undefined) requireAbove(`${option}.${name}`, max, 0);
  }
}

const everyHook: { readonly [Name in keyof AgentHooks]-?: true } = {
  beforeModel: true,
  afterModel: true,
  beforeTool: true,
  afterTool: true,
  onFinish: true,
};

function resolveHooks(given: NonNullable<EngineOptions['hooks']>): readonly AgentHooks[] {
  const list = isHookList(given) ? given : [given];
  for (const hooks of list) {
    requireObject('hooks', hooks, 'an object with hooks, or a list of them');
    for (const name of Object.keys(everyHook)) {
      const hook: unknown = Reflect.get(hooks, name);
      if (hook !== undefined) requireFunction(`hooks.${name}`, hook);
    }
  }
  return list;
}

function requireDriftPolicy(policy: DriftPolicy): void {
  const reactions = ['warn', 'error', 'ignore'];
  const want = "'warn', 'error' or 'ignore'";
  if (typeof policy !== 'object') {
    if (!reactions.includes(policy))
      refuseOption('onAgentDrift', policy, `${want}, or one of them for each part`);
    return;
  }
  requireObject('onAgentDrift', policy);
  requireKnownOptions<DriftReactions>('onAgentDrift.', policy, {
    model: true,
    tools: true,
    instructions: true,
  });
  for (const [part, reaction] of Object.entries(policy))
    if (reaction !== undefined && !reactions.includes(reaction as string))
      refuseOption(`onAgentDrift.${part}`, reaction, want);
}

function resolveRetry(retry: RetryOptions): Engine['retry'] {
  requireObject('retry', retry);
  requireKnownOptions<RetryOptions>('retry.', retry, { maxRetries: true, delayMs: true, maxDelayMs: true });
  const { maxRetries = 2, delayMs = 1_000, maxDelayMs = 30_000 } = retry;
  requireWholeNumber('retry.maxRetries', maxRetries, 0);
  requireAtLeast('retry.delayMs', delayMs, 0);
  requireAtLeast('retry.maxDelayMs', maxDelayMs, 0);
  return { maxRetries, delayMs, maxDelayMs };
}

function resolveFallbackModels(given: readonly LLMProvider[]): Engine['fallbackModels'] {
  const list: unknown = given;
  if (!Array.isArray(list)) refuseOption('fallbackModels', given, 'a list of LLMProviders');
  for (const [index, provider] of given.entries())
    if (typeof (provider as LLMProvider | null)?.generate !== 'function')
      refuseOption(`fallbackModels[${index}]`, provider, 'an LLMProvider, which has a generate method');
  return Object.freeze([...given]);
}

function resolveLease(lease: EngineOptions['lease'] = {}): Engine['lease'] {
  if (lease === false) return undefined;
  requireObject('lease', lease, 'an object, or false');
  requireKnownOptions<LeaseOptions>('lease.', lease, { ttlMs: true, heartbeatMs: true });
  const { ttlMs = 30_000, heartbeatMs = ttlMs / 3 } = lease;
  requireAbove('lease.ttlMs', ttlMs, 0);
  requireAbove('lease.heartbeatMs', heartbeatMs, 0);
  // With a heartbeat every half period one late renewal would already lose the lease.
  if (heartbeatMs > ttlMs / 2)
    refuseOption('lease.heartbeatMs', heartbeatMs, `at most half of lease.ttlMs (${ttlMs})`);
  return { ttlMs, heartbeatMs };
}

function isHookList(hooks: AgentHooks | readonly AgentHooks[]): hooks is readonly AgentHooks[] {
  return Array.isArray(hooks);
}
