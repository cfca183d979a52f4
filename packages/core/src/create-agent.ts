/** Wires stores, tools and the engine into the object that applications hold. */
import { ConfigurationError, type AgentRun, type ExecutionResult } from '@lousho/contract';
import { executePlan, forkRun, streamPlan, type OrderPlan } from '@lousho/executor/wiring';
import type { ForkOptions, ForkResult } from '@lousho/executor';
import { resolveAgentConfig, type AgentConfig, type AgentParts } from './agent-config.ts';
import type { Agent } from './agent.ts';
import { agentApprovals, decideInCode } from './approvals.ts';
import { discard } from './discard.ts';
import { fireSchedule } from './fire-schedule.ts';
import { LiveRuns } from './live-runs.ts';
import { pendingRuns } from './pending-runs.ts';
import { planInput, planOnce, planResume } from './plan-run.ts';
import { startRecovery } from './recover.ts';
import { requireOptions } from './require-options.ts';
import { partsOf } from './session-parts.ts';
import { openSession } from './session.ts';
import { startSchedules } from './start-schedules.ts';
import { hasTurn, resumeTurn } from './session-turns.ts';

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
      const plan = planResume(parts, live, sessionId, options);
      const isTurn = options.kind !== 'run' && (await hasTurn(partsOf(parts, sessionId).sessions, sessionId));
      const result = isTurn
        ? await resumeTurn({ parts: turnParts(parts, sessionId), live }, sessionId, options)
        : options.kind === 'session'
          ? null
          : await executePlan(plan);
      return result && decideInCode(parts, live, result, options);
    },
    discard: (sessionId, options = {}) => discard(parts, live, sessionId, options),
    async runOnce(id, input, options = {}) {
      const plan = planOnce(planInput(parts, live, input, { ...options, sessionId: id }));
      return decideInCode(parts, live, await sendAndWait(plan), options);
    },
    session: (options) => openSession(parts, live, options),
    pending: () => pendingRuns(parts.checkpoints),
    fork: (sessionId, options) => forkAgentRun(parts, live, sessionId, options),
    recover: (options = {}) => startRecovery(parts, live, options),
    approvals: agentApprovals(parts, live),
    startSchedules: (schedules, options = {}) => startSchedules(parts, live, schedules, options),
    fireSchedule: (schedule, options = {}) => fireSchedule(parts, live, schedule, options),
    async shutdown(options = {}) {
      requireOptions(options, { timeoutMs: true });
      const { timeoutMs = 10_000 } = options;
      if (typeof timeoutMs !== 'number' || !(timeoutMs >= 0)) {
        const want = 'a number, 0 or more';
        throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option: 'timeoutMs', got: timeoutMs, want });
      }
      await live.shutDown(timeoutMs);
    },
  };
}

/** Where the turns of this session lie. */
function turnParts(parts: AgentParts, sessionId: string): AgentParts {
  const own = partsOf(parts, sessionId);
  return { ...own, checkpoints: own.sessions.turns };
}

async function sendAndWait(plan: OrderPlan): Promise<ExecutionResult> {
  const result = await executePlan(plan);
  if (result === null) throw new Error('Invariant: a send gave no result');
  return result;
}

function streamInput(plan: OrderPlan): AgentRun {
  return streamPlan(plan, plan.engine.ports.clock);
}

async function forkAgentRun(
  { checkpoints: store, engine }: AgentParts,
  live: LiveRuns,
  sessionId: string,
  options: ForkOptions,
): Promise<ForkResult> {
  live.requireOpen();
  if (store === undefined)
    throw new ConfigurationError('LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE', { operation: 'agent.fork()' });
  return live.during(forkRun({ sessionId, store, engine, options }));
}
