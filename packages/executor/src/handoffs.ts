/** The agents of one conversation: the one that it began with, and those that it may be handed over to, from any of them to any other. */
import {
  requireKnownOptions,
  type HandoffTarget,
  type RunContext,
  type SubAgent,
  type OptionNames,
} from '@lousho/contract';
import { agentSource, type AgentSpec } from './agent-source.ts';
import { handoffTool, handoffToolName } from './handoff-tool.ts';
import { refuseOption, requireObject, requireWholeNumber } from './require-option.ts';
import type { AgentSource, ResolvedAgent } from './resolved-agent.ts';
import { everySubAgentOption, requireFreeNames, requireSubAgent } from './sub-agents.ts';

/** Of one run, unless the agent says otherwise. */
const DEFAULT_MAX_HANDOFFS = 5;

export interface HandoffSpec {
  /** Checked by `requireHandoffs`. */
  readonly handoffs?: readonly HandoffTarget[] | undefined;
  readonly maxHandoffs?: number | undefined;
}

/**
 * Gives the member that answers. Somebody whom the agent does not list any more is not there: the agent itself is given then, and a run
 * that needs the other one sees that by the name.
 */
export function conversationSource(
  lead: AgentSpec,
  { handoffs = [], maxHandoffs }: HandoffSpec,
): AgentSource {
  if (handoffs.length === 0) return agentSource(lead);
  const members = membersOf(lead, handoffs, maxHandoffs ?? DEFAULT_MAX_HANDOFFS);
  const first = members.get(lead.name);
  if (first === undefined) throw new Error(`Invariant: ${lead.name} is no member of its own conversation`);
  const resolve = (
    ctx: RunContext,
    stored: Parameters<AgentSource['resolve']>[1],
    activeAgent = stored?.activeAgent,
  ): ResolvedAgent | Promise<ResolvedAgent> =>
    ((activeAgent === undefined ? undefined : members.get(activeAgent)) ?? first).resolve(ctx, stored);
  return {
    name: lead.name,
    isDynamic: [...members.values()].some(({ isDynamic }) => isDynamic),
    resolve,
  };
}

function membersOf(
  lead: AgentSpec,
  handoffs: readonly HandoffTarget[],
  maxHandoffs: number,
): ReadonlyMap<string, AgentSource> {
  const toLead = { name: lead.name, description: 'The conversation began with it.' };
  const everybody = [toLead, ...handoffs];
  const source = (spec: AgentSpec): AgentSource =>
    agentSource({
      ...spec,
      ownTools: [
        ...(lead.ownTools ?? []),
        ...everybody.filter(({ name }) => name !== spec.name).map((other) => handoffTool(other, maxHandoffs)),
      ],
    });
  const { levelsBelow, taskRecords } = lead;
  return new Map([
    [lead.name, source(lead)],
    ...handoffs.map(
      ({ name, instructions, provider, model, tools, providerTools, subagents }) =>
        [
          name,
          source({
            ...{ name, instructions, tools, providerTools, subagents, levelsBelow, taskRecords },
            provider: provider ?? lead.provider,
            // A provider of its own comes with its own model.
            model: model ?? (provider === undefined ? lead.model : undefined),
          }),
        ] as const,
    ),
  ]);
}

/* ── Whether they can be used ── */

const everyOption: OptionNames<HandoffTarget> = { ...everySubAgentOption, needsApproval: true };

/** What one run has once, whoever answers. */
const OF_THE_RUN = ['maxSteps', 'limits', 'toolConcurrency'] as const;

/** As long as the name of its tool fits into 64 characters. */
const NAME = /^[A-Za-z0-9_-]{1,53}$/;
const WANTED_NAME = '1-53 characters of A-Z a-z 0-9 _ -, as its tool is named after it';

/** @throws synchronously LOUSHO_CONFIG_INVALID naming the option */
export function requireHandoffs(
  agent: HandoffSpec & Pick<SubAgent, 'name'> & Pick<AgentSpec, 'tools' | 'ownTools'>,
): void {
  const { handoffs, maxHandoffs, name } = agent;
  if (maxHandoffs !== undefined) requireWholeNumber('maxHandoffs', maxHandoffs, 1);
  const given: unknown = handoffs;
  if (handoffs === undefined) return;
  if (!Array.isArray(given)) refuseOption('handoffs', given, 'a list of agents');
  if (handoffs.length === 0) return;
  if (!NAME.test(name)) refuseOption('name', name, `with handoffs: ${WANTED_NAME}`);
  const names = new Set([name]);
  for (const [index, target] of handoffs.entries()) {
    requireObject(`handoffs[${index}]`, target, 'an object with name and description');
    if (typeof target.name !== 'string' || !NAME.test(target.name))
      refuseOption(`handoffs[${index}].name`, target.name, WANTED_NAME);
    if (names.has(target.name))
      refuseOption(
        'handoffs',
        target.name,
        'a list in which each name stands once, and not that of the agent',
      );
    names.add(target.name);
    requireTarget(target);
  }
  const tools = new Set([...names].map(handoffToolName));
  const why = 'this is the name of the tool that hands over';
  requireFreeNames('tools', agent.tools, tools, why);
  for (const target of handoffs) requireFreeNames(`handoffs.${target.name}.tools`, target.tools, tools, why);
}

function requireTarget(target: HandoffTarget): void {
  const prefix = `handoffs.${target.name}.`;
  requireKnownOptions(prefix, target, everyOption);
  for (const option of OF_THE_RUN)
    if (target[option] !== undefined)
      refuseOption(
        `${prefix}${option}`,
        target[option],
        'that of the agent that lists it: it is the same run',
      );
  if (target.remote !== undefined)
    refuseOption(`${prefix}remote`, target.remote, 'left out: a remote agent is for tasks (subagents)');
  const { needsApproval } = target;
  if (!['undefined', 'boolean', 'function'].includes(typeof needsApproval))
    refuseOption(`${prefix}needsApproval`, needsApproval, 'true, false or a function');
  requireSubAgent(target, prefix, new Set([target]), everyOption);
}
