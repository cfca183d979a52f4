/** The agent of one process: its model follows the script of the world, and all that it does outside is seen by the checker. */
import {
  LLMProviderError,
  PropagatingToolError,
  defineTool,
  type AgentStore,
  type JsonValue,
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type SubAgent,
  type Telemetry,
  type Tool,
  type ToolContext,
} from '@lousho/contract';
import type { SeededRandom } from '../conformance/seeded-random.ts';
import type { Checker } from './checker.ts';
import { callKey } from './facts.ts';
import { DESK, helpers, respond, toolNames, type ScriptOptions, type ToolName } from './script.ts';
import type { SimulatedAgentConfig } from './simulated-agent.ts';
import type { Trace } from './trace.ts';
import type { VirtualProcess } from './virtual-process.ts';

export const AGENT_NAME = 'simulated';

export interface AgentDeps {
  readonly process: VirtualProcess;
  readonly store: AgentStore;
  readonly checker: Checker;
  readonly trace: Trace;
  readonly random: SeededRandom;
  readonly script: ScriptOptions;
  readonly toolConcurrency: number | 'unbounded';
  /** Whether this call of the model fails. */
  readonly modelFails: () => boolean;
}

export function agentConfig(deps: AgentDeps): SimulatedAgentConfig {
  const { process, store, checker, toolConcurrency } = deps;
  const provider = new SimulatedModel(deps);
  const tools = toolNames.map((name) => simulatedTool(name, deps));
  const subagents = helpers.reduceRight<readonly SubAgent[]>(
    (below, name) => [
      { name, description: `Is a ${name}.`, provider, tools, subagents: below, maxSteps: MAX_STEPS },
    ],
    [],
  );
  return {
    ...{ name: AGENT_NAME, provider, tools, subagents, store, toolConcurrency },
    handoffs: [{ name: DESK, description: 'Is at the desk.', provider, tools, subagents }],
    ports: process.ports,
    maxSteps: MAX_STEPS,
    telemetry: watchedModels(deps),
    onEvent(event) {
      if (event.type === 'checkpoint.saved' && process.isAlive)
        checker.toldOfSave({ ...event, process: process.name });
    },
  };
}

/** More than a run with all its inputs can need. */
const MAX_STEPS = 60;

/** Which run a request belongs to: only the engine knows. */
function watchedModels({ process, checker, trace }: AgentDeps): Telemetry {
  return {
    async modelCall({ runId, step, request }, work) {
      if (process.isAlive) {
        trace.note(process.name, `asks for response ${step + 1} of ${runId}`);
        checker.modelAsked({ process, runId, step, request });
      }
      const drop = (): void => void (checker.facts.modelOf(runId).dropped += 1);
      request.signal.addEventListener('abort', drop, { once: true });
      try {
        return await work();
      } finally {
        request.signal.removeEventListener('abort', drop);
      }
    },
  };
}

class SimulatedModel implements LLMProvider {
  readonly providerId = 'simulated';
  readonly modelId = 'simulated';
  readonly #deps: AgentDeps;

  constructor(deps: AgentDeps) {
    this.#deps = deps;
  }

  async generate(request: LLMRequest): Promise<LLMResponse> {
    const { process, random, modelFails, script } = this.#deps;
    await unlessAborted(
      process.wait(random.pick([10, 200, 2_000, 9_000]) * (1 + random.below(1_000) / 1_000)),
      request.signal,
    );
    if (modelFails())
      throw new LLMProviderError('The model is down.', { kind: 'api', retryable: random.chance(0.8) });
    return respond(request, script);
  }

  async *stream(request: LLMRequest) {
    const response = await this.generate(request);
    for (const part of response.message.content) {
      if (part.type !== 'text') continue;
      yield { type: 'text-delta', text: part.text } as const;
      await unlessAborted(this.#deps.process.wait(this.#deps.random.below(1_000)), request.signal);
    }
    yield { type: 'finish', response } as const;
  }
}

function simulatedTool(name: ToolName, deps: AgentDeps): Tool {
  const isGated = name === 'pay';
  const onInterrupted = name === 'once' ? 'never' : name === 'unsure' ? 'ask' : 'retry';
  return defineTool<{ readonly type: 'object' }, unknown>({
    ...{ name, description: name, input: { type: 'object' }, onInterrupted },
    needsApproval: isGated,
    execute: (args, ctx) => execute(name, args, ctx, deps),
  });
}

async function execute(
  name: ToolName,
  args: JsonValue,
  ctx: ToolContext,
  { process, checker, trace }: AgentDeps,
): Promise<JsonValue> {
  const { ms, heedsSignal } = args as { readonly ms: number; readonly heedsSignal: boolean };
  const start = {
    process,
    ctx,
    args,
    isOnce: name === 'pay' || name === 'once',
    asks: asksOf[name] ?? 'never',
  } as const;
  const key = callKey(ctx);
  if (process.isAlive) {
    trace.note(process.name, `begins ${name} ${key}`);
    checker.toolStarted(start);
  }
  const times = checker.facts.callOf(key).starts.length;
  if (ms > 0) await (heedsSignal ? unlessAborted(process.wait(ms), ctx.signal) : process.wait(ms));
  if (name === 'fails') throw new Error('It does not work.');
  if (name === 'rejects' && times % 2 === 1) throw new PropagatingToolError('Not now.');
  const value = `${name} ${key}, ${times}`;
  trace.note(process.name, `ends ${name} ${key}`);
  checker.toolEnded(start, value);
  return value;
}

const asksOf: { readonly [Name in ToolName]?: 'always' | 'to repeat' } = {
  pay: 'always',
  unsure: 'to repeat',
};

/** @throws the signal's reason when it aborts first */
async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let giveUp = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    giveUp = () => reject(signal.reason as Error);
    signal.addEventListener('abort', giveUp, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
