/** Whether sub-agents can be used, said by their names: wrong ones are refused when the agent is made, not when a model first calls one. */
import { requireKnownOptions, type SubAgent, type Tool, type OptionNames } from '@lousho/contract';
import { refuseOption, requireObject, requireText, requireWholeNumber } from './require-option.ts';
import { requireLimits, resolveToolConcurrency } from './run-options.ts';
import { TASK_CONTROL_NAMES } from './task-control-tools.ts';
import { TASK } from './task-tool.ts';

/** How deep `task` may nest unless the agent says otherwise. */
export const DEFAULT_MAX_SUBAGENT_DEPTH = 5;

export const everySubAgentOption: OptionNames<SubAgent> = {
  name: true,
  description: true,
  instructions: true,
  provider: true,
  model: true,
  tools: true,
  providerTools: true,
  subagents: true,
  maxSteps: true,
  limits: true,
  toolConcurrency: true,
  remote: true,
};

/** @throws synchronously LOUSHO_CONFIG_INVALID naming the option */
export function requireSubAgents(agent: Pick<SubAgent, 'subagents' | 'tools'>): void {
  requireBelow(agent, '', new Set());
}

/** `seen`: sub-agents may name each other in a circle. */
function requireBelow(
  { subagents, tools }: Pick<SubAgent, 'subagents' | 'tools'>,
  prefix: string,
  seen: Set<SubAgent>,
): void {
  if (subagents === undefined) return;
  const option = `${prefix}subagents`;
  const given: unknown = subagents;
  if (!Array.isArray(given)) refuseOption(option, given, 'a list of sub-agents');
  if (subagents.length > 0)
    requireFreeNames(`${prefix}tools`, tools, ours, 'with sub-agents this is the name of a tool for them');
  const names = new Set<string>();
  for (const [index, subagent] of subagents.entries()) {
    requireObject(`${option}[${index}]`, subagent, 'an object with name and description');
    requireText(`${option}[${index}].name`, subagent.name);
    if (names.has(subagent.name))
      refuseOption(option, subagent.name, 'a list in which each name stands once');
    names.add(subagent.name);
    if (!seen.has(subagent)) requireSubAgent(subagent, `${option}.${subagent.name}.`, seen.add(subagent));
  }
}

/** @throws synchronously LOUSHO_CONFIG_INVALID naming the option */
export function requireSubAgent(
  subagent: SubAgent,
  prefix: string,
  seen: Set<SubAgent>,
  everyOption: OptionNames<SubAgent> = everySubAgentOption,
): void {
  const { description, provider, providerTools, tools, maxSteps, limits, toolConcurrency } = subagent;
  requireKnownOptions(prefix, subagent, everyOption);
  requireText(`${prefix}description`, description);
  if (subagent.remote !== undefined) requireRemote(subagent, prefix);
  for (const part of ['instructions', 'model'] as const) {
    const given: unknown = subagent[part];
    if (given !== undefined && typeof given !== 'function') requireText(`${prefix}${part}`, given);
  }
  if (provider !== undefined && typeof provider?.generate !== 'function')
    refuseOption(`${prefix}provider`, provider, 'an LLMProvider, which has a generate method');
  if (providerTools !== undefined && !Array.isArray(providerTools))
    refuseOption(`${prefix}providerTools`, providerTools, 'a list of provider tools');
  if (tools !== undefined && typeof tools !== 'function') requireTools(`${prefix}tools`, tools);
  if (maxSteps !== undefined) requireWholeNumber(`${prefix}maxSteps`, maxSteps, 1);
  if (limits !== undefined) requireLimits(limits, `${prefix}limits`);
  if (toolConcurrency !== undefined) resolveToolConcurrency(toolConcurrency, `${prefix}toolConcurrency`);
  requireBelow(subagent, prefix, seen);
}

/** What it works with is not for the lead to say. */
function requireRemote(subagent: SubAgent, prefix: string): void {
  const { name: _name, description: _description, remote, ...others } = subagent;
  for (const method of ['work', 'stop'] as const)
    if (typeof remote?.[method] !== 'function')
      refuseOption(`${prefix}remote`, remote, 'a RemoteAgent, for example by remoteAgent() of @lousho/http');
  for (const [option, given] of Object.entries(others))
    if (given !== undefined)
      refuseOption(`${prefix}${option}`, given, 'left out: a remote agent has its own');
}

function requireTools(option: string, tools: readonly Tool[]): void {
  if (!Array.isArray(tools)) refuseOption(option, tools, 'a list of tools made by defineTool');
  const names = new Set<string>();
  for (const tool of tools as readonly (Tool | null)[]) {
    if (tool?.inputSchema === undefined) refuseOption(option, tool, 'a list of tools made by defineTool');
    const { name } = tool;
    if (names.has(name)) refuseOption(option, name, 'a list in which each name stands once');
    names.add(name);
  }
}

const ours: ReadonlySet<string> = new Set([TASK, ...TASK_CONTROL_NAMES]);

/**
 * Tools that are made anew for each run are checked when they are.
 * @param why they are taken, as the error says it
 */
export function requireFreeNames(
  option: string,
  tools: SubAgent['tools'],
  taken: ReadonlySet<string>,
  why: string,
): void {
  if (!Array.isArray(tools)) return;
  const clash = (tools as readonly (Tool | null)[]).find((tool) => taken.has(tool?.name ?? ''));
  if (clash) refuseOption(option, clash.name, `a list without "${clash.name}": ${why}`);
}
