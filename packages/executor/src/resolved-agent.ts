/** The agent of one run: what it says, what it may call, which model answers, and what it is recognised by. */
import {
  deepFreeze,
  type AgentFingerprint,
  type Checkpoint,
  type LLMProvider,
  type LLMTool,
  type ProviderTool,
  type RemoteAgent,
  type RunContext,
  type SessionStore,
  type Tool,
} from '@lousho/contract';
import { fingerprintOf } from './agent-fingerprint.ts';
import type { Engine } from './run-options.ts';
import { isTaskControlTool } from './task-control-tools.ts';
import { isTaskTool } from './task-tool.ts';

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
  /** By name: whom the `task` tool, which is among the tools then, may call. */
  readonly subagents: ReadonlyMap<string, ResolvedSubAgent>;
  /** Where its tasks are kept, so that it may go on with them in another process. */
  readonly taskRecords: SessionStore | undefined;
  /** Set when it works elsewhere: it is asked in place of a model, and the rest is empty. */
  readonly remote?: RemoteAgent | undefined;
  /** Hashed once per agent. */
  fingerprint(): Promise<AgentFingerprint>;
}

export interface ResolvedSubAgent {
  readonly source: AgentSource;
  /** What its runs are executed with: its own limits, and everything else of its lead. */
  engine(leads: Engine): Engine;
}

/**
 * Gives the agent for a run: the same one always, or (dynamic) one made from the run's context. `stored`: the run that is resumed.
 * `activeAgent`: who answers after a handoff, by default in `stored`; somebody who is not there gives the agent itself.
 */
export interface AgentSource {
  readonly name: string;
  readonly isDynamic: boolean;
  resolve(
    ctx: RunContext,
    stored: Checkpoint | undefined,
    activeAgent?: string,
  ): ResolvedAgent | Promise<ResolvedAgent>;
}

export interface AgentParts {
  readonly name: string;
  readonly provider: LLMProvider;
  readonly model?: string | undefined;
  readonly instructions?: string | undefined;
  readonly tools: readonly Tool[];
  readonly providerTools?: readonly ProviderTool[] | undefined;
  readonly subagents?: ResolvedAgent['subagents'] | undefined;
  readonly taskRecords?: SessionStore | undefined;
}

export function resolveAgent(parts: AgentParts): ResolvedAgent {
  const tools = new Map(parts.tools.map((tool) => [tool.name, tool]));
  const llmTools = deepFreeze(
    parts.tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  );
  const model = parts.model ?? parts.provider.modelId;
  // A new sub-agent makes no other agent: each has a fingerprint of its own.
  const ownTools = llmTools.filter(
    ({ name }) => !isTaskTool(tools.get(name)) && !isTaskControlTool(tools.get(name)),
  );
  let fingerprint: Promise<AgentFingerprint> | undefined;
  return {
    name: parts.name,
    provider: parts.provider,
    model: parts.model,
    instructions: parts.instructions === '' ? undefined : parts.instructions,
    tools,
    llmTools,
    providerTools: Object.freeze([...(parts.providerTools ?? [])]),
    subagents: parts.subagents ?? noSubAgents,
    taskRecords: parts.taskRecords,
    fingerprint: () =>
      (fingerprint ??= fingerprintOf({ model, tools: ownTools, instructions: parts.instructions ?? '' })),
  };
}

const noSubAgents: ResolvedAgent['subagents'] = new Map();

/** An agent that is the same for every run. */
export function fixedAgent(agent: ResolvedAgent): AgentSource {
  return { name: agent.name, isDynamic: false, resolve: () => agent };
}
