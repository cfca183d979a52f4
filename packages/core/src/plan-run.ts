/** What a call of an application asks for → the order that the engine executes. */
import {
  ConfigurationError,
  assertRunId,
  type AgentInput,
  type ModelSettings,
  type OptionNames,
} from '@lousho/contract';
import { planSend, resolveEngine, type OrderPlan } from '@lousho/executor/wiring';
import type { AgentParts } from './agent-config.ts';
import type { ResumeOptions, SendOptions } from './agent.ts';
import type { LiveRuns } from './live-runs.ts';
import { requireOptions } from './require-options.ts';
import { refusePausedTurn } from './session-paused.ts';

/** Checks a call's input and options and says what is to be executed. @throws synchronously what `Agent.send` does for wrong options */
export function planInput(
  parts: AgentParts,
  live: LiveRuns,
  input: AgentInput,
  options: SendOptions,
): OrderPlan {
  live.requireOpen();
  requireOptions(options, everySendOption, "an object, for example { sessionId: 'order-7' }");
  const { checkpoints: store, approvals, source } = parts;
  const plan = planSend({ ...options, input, store, approvals, source, engine: engineFor(parts, options) });
  const { sessionId } = options;
  return {
    ...plan,
    onStart: (stop) => live.add(stop),
    // A store without a part for sessions would be asked twice more for each new run.
    ...(sessionId === undefined || parts.store?.sessions === undefined
      ? undefined
      : { beforeNew: () => refusePausedTurn(parts.sessions, sessionId) }),
  };
}

/** What is mistyped here would run without its store. */
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

/** The id stands for the job: what is stored under it is this input's, however often it comes. */
export function planOnce(plan: OrderPlan): OrderPlan {
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

const everyResumeOption: OptionNames<ResumeOptions> = { signal: true, kind: true };

export function planResume(
  parts: AgentParts,
  live: LiveRuns,
  sessionId: string,
  options: ResumeOptions,
): OrderPlan {
  live.requireOpen();
  requireOptions(options, everyResumeOption);
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
    signal: options.signal,
    whenBusy: 'refuse',
    leaseWaitMs: 0,
    onStart: (stop) => live.add(stop),
  };
}
