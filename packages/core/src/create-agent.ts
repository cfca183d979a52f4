/** Wires stores, tools and the engine into the object that applications hold. */
import {
  ConfigurationError,
  assertRunId,
  type AgentInput,
  type AgentRun,
  type ExecutionResult,
  type ModelSettings,
} from '@lousho/contract';
import {
  executePlan,
  planSend,
  requireKnownOptions,
  resolveEngine,
  streamPlan,
  type OptionNames,
  type OrderPlan,
} from '@lousho/executor/wiring';
import { resolveAgentConfig, type AgentConfig, type AgentParts } from './agent-config.ts';
import type { AbortOptions, Agent, SendOptions } from './agent.ts';
import { agentApprovals, decideInCode } from './approvals.ts';
import { pendingRuns } from './pending-runs.ts';
import { LiveRuns } from './live-runs.ts';
import { startRecovery } from './recover.ts';

/** @throws synchronously LOUSHO_CONFIG_INVALID, LOUSHO_STORE_VERSION_UNSUPPORTED. */
export function createAgent(config: AgentConfig): Agent {
  const parts = resolveAgentConfig(config);
  const live = new LiveRuns(parts.engine.ports.clock);
  return {
    name: parts.name,
    async send(input, options = {}) {
      const result = await sendAndWait(planInput(parts, live, input, options));
      return decideInCode(parts, live, result, options);
    },
    stream(input, options = {}) {
      return streamInput(planInput(parts, live, input, options));
    },
    async resume(sessionId, options = {}) {
      const result = await executePlan(planResume(parts, live, sessionId, options));
      return result && decideInCode(parts, live, result, options);
    },
    async runOnce(id, input, options = {}) {
      const plan = planOnce(planInput(parts, live, input, { ...options, sessionId: id }));
      return decideInCode(parts, live, await sendAndWait(plan), options);
    },
    pending: () => pendingRuns(parts.checkpoints),
    recover: (options = {}) => startRecovery(parts, live, options),
    approvals: agentApprovals(parts, live),
    async shutdown({ timeoutMs = 10_000 } = {}) {
      if (typeof timeoutMs !== 'number' || !(timeoutMs >= 0)) {
        const want = 'a number, 0 or more';
        throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option: 'timeoutMs', got: timeoutMs, want });
      }
      await live.shutDown(timeoutMs);
    },
  };
}

async function sendAndWait(plan: OrderPlan): Promise<ExecutionResult> {
  const result = await executePlan(plan);
  if (result === null) throw new Error('Invariant: a send gave no result');
  return result;
}

function streamInput(plan: OrderPlan): AgentRun {
  return streamPlan(plan, plan.engine.ports.clock);
}

function planInput(parts: AgentParts, live: LiveRuns, input: AgentInput, options: SendOptions): OrderPlan {
  live.requireOpen();
  requireSendOptions(options);
  const { checkpoints: store, approvals, source } = parts;
  const plan = planSend({ ...options, input, store, approvals, source, engine: engineFor(parts, options) });
  return { ...plan, onStart: (stop) => live.add(stop) };
}

const everySendOption: OptionNames<SendOptions> = {
  sessionId: true,
  inputId: true,
  signal: true,
  metadata: true,
  principal: true,
  businessState: true,
  maxSteps: true,
  modelSettings: true,
  approvalTtlMs: true,
};

/** What is mistyped here would run without its store. */
function requireSendOptions(options: SendOptions): void {
  const given: unknown = options;
  if (typeof given !== 'object' || given === null)
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'options',
      got: given,
      want: "an object, for example { sessionId: 'order-7' }",
    });
  requireKnownOptions('', given, everySendOption);
}

/** The id stands for the job: what is stored under it is this input's, however often it comes. */
function planOnce(plan: OrderPlan): OrderPlan {
  const { request } = plan;
  return request.type === 'send' ? { ...plan, request: { ...request, type: 'once' } } : plan;
}

/** The agent's options with those that a call may override. */
function engineFor(
  parts: AgentParts,
  { maxSteps, modelSettings, approvalTtlMs }: SendOptions,
): AgentParts['engine'] {
  if (maxSteps === undefined && modelSettings === undefined && approvalTtlMs === undefined)
    return parts.engine;
  const { options } = parts;
  return resolveEngine({
    ...options,
    maxSteps: maxSteps ?? options.maxSteps,
    modelSettings: mergeSettings(options.modelSettings, modelSettings),
    approvalTtlMs: approvalTtlMs ?? options.approvalTtlMs,
  });
}

/** Setting by setting. What is no object goes on as it is, and is refused by name. */
function mergeSettings(
  agents: ModelSettings | undefined,
  calls: ModelSettings | undefined,
): ModelSettings | undefined {
  if (calls === undefined) return agents;
  return typeof calls === 'object' && calls !== null ? { ...agents, ...calls } : calls;
}

function planResume(
  parts: AgentParts,
  live: LiveRuns,
  sessionId: string,
  { signal }: AbortOptions,
): OrderPlan {
  live.requireOpen();
  assertRunId(sessionId);
  const { checkpoints: store, approvals, source, engine } = parts;
  if (store === undefined)
    throw new ConfigurationError('LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE', { operation: 'agent.resume()' });
  return {
    checkpointId: sessionId,
    sessionId,
    request: { type: 'resume' },
    store,
    isEphemeral: false,
    approvals,
    source,
    engine,
    signal,
    whenBusy: 'refuse',
    leaseWaitMs: 0,
    onStart: (stop) => live.add(stop),
  };
}
