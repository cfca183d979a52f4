/** The agent of one run: what it says, what it may call, which model answers, and what it is recognised by. */
import {
  ConfigurationError,
  deepFreeze,
  type AgentFingerprint,
  type Checkpoint,
  type LLMProvider,
  type LLMTool,
  type ProviderTool,
  type RunContext,
  type Tool,
} from '@lousho/contract';
import { fingerprintOf } from './agent-fingerprint.ts';
import type { AgentDefinition } from './run-options.ts';
import { ToolRegistry } from './tool-registry.ts';

export interface ResolvedAgent {
  readonly name: string;
  readonly provider: LLMProvider;
  /** What requests ask for; absent: the provider's own. */
  readonly model: string | undefined;
  readonly instructions: string | undefined;
  readonly tools: ReadonlyMap<string, Tool>;
  /** The same tools as the model reads them: made once, shared by all requests. */
  readonly llmTools: readonly LLMTool[];
  readonly providerTools: readonly ProviderTool[];
  /** Hashed once per agent. */
  fingerprint(): Promise<AgentFingerprint>;
}

/** Gives the agent for a run: the same one always, or (dynamic) one made from the run's context. `stored`: the run that is resumed. */
export interface AgentSource {
  readonly name: string;
  readonly isDynamic: boolean;
  resolve(ctx: RunContext, stored: Checkpoint | undefined): ResolvedAgent | Promise<ResolvedAgent>;
}

export interface AgentParts {
  readonly name: string;
  readonly provider: LLMProvider;
  readonly model?: string | undefined;
  readonly instructions?: string | undefined;
  readonly tools: readonly Tool[];
  readonly providerTools?: readonly ProviderTool[] | undefined;
}

export function resolveAgent(parts: AgentParts): ResolvedAgent {
  const tools = new Map(parts.tools.map((tool) => [tool.name, tool]));
  const llmTools = deepFreeze(
    parts.tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  );
  const model = parts.model ?? parts.provider.modelId;
  let fingerprint: Promise<AgentFingerprint> | undefined;
  return {
    name: parts.name,
    provider: parts.provider,
    model: parts.model,
    instructions: parts.instructions === '' ? undefined : parts.instructions,
    tools,
    llmTools,
    providerTools: Object.freeze([...(parts.providerTools ?? [])]),
    fingerprint: () =>
      (fingerprint ??= fingerprintOf({ model, tools: llmTools, instructions: parts.instructions ?? '' })),
  };
}

/** An agent that is the same for every run. */
export function fixedAgent(agent: ResolvedAgent): AgentSource {
  return { name: agent.name, isDynamic: false, resolve: () => agent };
}

/** The agent that the executor's plain definition and registry describe. @throws synchronously LOUSHO_CONFIG_INVALID for a name that is not registered, or stands there twice. */
export function agentOfDefinition(
  definition: AgentDefinition,
  provider: LLMProvider,
  registry: ToolRegistry | undefined,
): AgentSource {
  if (typeof provider !== 'object' || provider === null || typeof provider.generate !== 'function') {
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'provider',
      got: provider,
      want: 'an LLMProvider',
    });
  }
  const tools =
    definition.tools === undefined
      ? (registry?.list() ?? [])
      : new ToolRegistry(definition.tools.map((name) => registered(name, registry))).list();
  return fixedAgent(resolveAgent({ ...definition, name: definition.name ?? 'agent', provider, tools }));
}

function registered(name: string, registry: ToolRegistry | undefined): Tool {
  const tool = registry?.get(name);
  if (tool === undefined)
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'agent.tools',
      got: name,
      want: 'a list of names in the tool registry',
    });
  return tool;
}
