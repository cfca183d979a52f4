/** The executor's plain definition of an agent → where its runs get the agent from. */
import { ConfigurationError, type LLMProvider, type Tool } from '@lousho/contract';
import { conversationSource, requireHandoffs } from './handoffs.ts';
import type { AgentSource } from './resolved-agent.ts';
import type { AgentDefinition } from './run-options.ts';
import { DEFAULT_MAX_SUBAGENT_DEPTH, requireSubAgents } from './sub-agents.ts';
import { ToolRegistry } from './tool-registry.ts';

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
  const spec = {
    ...{ ...definition, name: definition.name ?? 'agent', provider, tools },
    levelsBelow: DEFAULT_MAX_SUBAGENT_DEPTH,
  };
  requireSubAgents(spec);
  requireHandoffs(spec);
  return conversationSource(spec, spec);
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
