/** What an agent is given as → the agent of one run: parts that are functions are asked for this run. */
import {
  ConfigurationError,
  type Dynamic,
  type LLMProvider,
  type ProviderTool,
  type RunContext,
  type SessionStore,
  type SubAgent,
  type Tool,
} from '@lousho/contract';
import { remoteSubAgent } from './remote-sub-agent.ts';
import { refuseOption } from './require-option.ts';
import {
  fixedAgent,
  resolveAgent,
  type AgentSource,
  type ResolvedAgent,
  type ResolvedSubAgent,
} from './resolved-agent.ts';
import { DEFAULT_MAX_STEPS, resolveToolConcurrency } from './run-options.ts';
import { taskControlTools } from './task-control-tools.ts';
import { taskTool } from './task-tool.ts';
import { ToolRegistry } from './tool-registry.ts';

export interface AgentSpec {
  readonly name: string;
  readonly provider: LLMProvider;
  readonly instructions?: Dynamic<string> | undefined;
  readonly model?: Dynamic<string> | undefined;
  readonly tools?: Dynamic<readonly Tool[]> | undefined;
  readonly providerTools?: readonly ProviderTool[] | undefined;
  /** Tools that Lousho adds to the agent's own. */
  readonly ownTools?: readonly Tool[] | undefined;
  /** Checked by `requireSubAgents`. */
  readonly subagents?: readonly SubAgent[] | undefined;
  /** Where the tasks of sub-agents are kept. */
  readonly taskRecords?: SessionStore | undefined;
  /** How many levels of sub-agents may be below this one. */
  readonly levelsBelow: number;
}

/** @throws synchronously LOUSHO_CONFIG_INVALID, for what is no function of the run */
export function agentSource(spec: AgentSpec): AgentSource {
  const { name, instructions, model, tools = [] } = spec;
  const isDynamic = [instructions, model, tools].some((part) => typeof part === 'function');
  if (!isDynamic) {
    const parts = { instructions, model, tools } as ResolvedParts;
    return fixedAgent(makeAgent(spec, parts));
  }
  return {
    name,
    isDynamic,
    async resolve(ctx, stored) {
      return makeAgent(spec, {
        // A resumed run keeps the model that it chose; tools and instructions are asked again with the saved context.
        model: stored?.runConfig?.model ?? (await resolvePart('model', model, ctx)),
        instructions: await resolvePart('instructions', instructions, ctx),
        tools: (await resolvePart('tools', tools, ctx)) ?? [],
      });
    },
  };
}

interface ResolvedParts {
  readonly instructions: string | undefined;
  readonly model: string | undefined;
  readonly tools: readonly Tool[];
}

function makeAgent(spec: AgentSpec, parts: ResolvedParts): ResolvedAgent {
  const { name, provider, providerTools, ownTools = [] } = spec;
  // At the limit of the depth nobody is there to delegate to.
  const subagents = spec.levelsBelow > 0 ? (spec.subagents ?? []) : [];
  const { tools, instructions, model } = parts;
  const given: unknown = tools;
  if (!Array.isArray(given)) refuseOption('tools', tools, 'a list of tools made by defineTool');
  if (instructions !== undefined && typeof instructions !== 'string')
    refuseOption('instructions', instructions, 'a text');
  if (model !== undefined && (typeof model !== 'string' || model === ''))
    refuseOption('model', model, 'a text that is not empty');
  return resolveAgent({
    ...parts,
    name,
    provider,
    providerTools,
    tools: new ToolRegistry([
      ...tools,
      ...ownTools,
      ...(subagents.length === 0 ? [] : [taskTool(subagents), ...taskControlTools()]),
    ]).list(),
    taskRecords: spec.taskRecords,
    subagents: new Map(subagents.map((subagent) => [subagent.name, resolveSubAgent(subagent, spec, model)])),
  });
}

/** What it does not say itself is its lead's; a provider of its own comes with its own model. */
function resolveSubAgent(
  subagent: SubAgent,
  lead: AgentSpec,
  leadsModel: string | undefined,
): ResolvedSubAgent {
  if (subagent.remote !== undefined) return remoteSubAgent(subagent.name, subagent.remote, lead.taskRecords);
  const { name, instructions, provider, tools, providerTools, subagents, maxSteps, limits, toolConcurrency } =
    subagent;
  const model = subagent.model ?? (provider === undefined ? leadsModel : undefined);
  let source: AgentSource | undefined;
  // Made when it is first asked for: sub-agents may name each other in a circle.
  const sourceOfIt = (): AgentSource =>
    (source ??= agentSource({
      ...{ name, instructions, model, tools, providerTools, subagents },
      provider: provider ?? lead.provider,
      taskRecords: lead.taskRecords,
      levelsBelow: lead.levelsBelow - 1,
    }));
  return {
    source: {
      name,
      isDynamic: [instructions, model, tools].some((part) => typeof part === 'function'),
      resolve: (ctx, stored) => sourceOfIt().resolve(ctx, stored),
    },
    engine: (leads) => ({
      ...leads,
      // What the session has left for it comes through its lead.
      sessionLimits: undefined,
      maxSteps: maxSteps ?? DEFAULT_MAX_STEPS,
      limits: limits ?? {},
      toolConcurrency:
        toolConcurrency === undefined ? leads.toolConcurrency : resolveToolConcurrency(toolConcurrency),
    }),
  };
}

async function resolvePart<Value>(
  option: 'model' | 'instructions' | 'tools',
  part: Dynamic<Value> | undefined,
  ctx: RunContext,
): Promise<Value | undefined> {
  if (typeof part !== 'function') return part;
  try {
    return await (part as (ctx: RunContext) => Value | Promise<Value>)(ctx);
  } catch (error) {
    throw new ConfigurationError('LOUSHO_CONFIG_RESOLVER_FAILED', { option }, { cause: error });
  }
}
