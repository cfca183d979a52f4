/** Whether the agent that resumes a run is the one that began it. Compared before any model call or tool. */
import type {
  AgentDrift,
  AgentFingerprint,
  DriftPolicy,
  DriftReaction,
  DriftReactions,
} from '@lousho/contract';

/** `undefined` when nothing differs, or when there is nothing to compare: old data, another way of hashing. */
export function compareAgents(
  saved: AgentFingerprint | undefined,
  current: AgentFingerprint,
): AgentDrift | undefined {
  if (saved === undefined || saved.version !== current.version || saved.hash === current.hash)
    return undefined;
  const before = new Map(Object.entries(saved.tools));
  const now = new Map(Object.entries(current.tools));
  return {
    ...(saved.model === current.model ? undefined : { model: modelChange(saved, current) }),
    toolsAdded: [...now.keys()].filter((name) => !before.has(name)),
    toolsRemoved: [...before.keys()].filter((name) => !now.has(name)),
    toolsChanged: [...now]
      .filter(([name, hash]) => before.has(name) && before.get(name) !== hash)
      .map(([name]) => name),
    instructions: saved.instructions !== current.instructions,
  };
}

function modelChange(saved: AgentFingerprint, current: AgentFingerprint): NonNullable<AgentDrift['model']> {
  return {
    ...(saved.model === undefined ? undefined : { saved: saved.model }),
    ...(current.model === undefined ? undefined : { current: current.model }),
  };
}

/** A reaction for each part. */
export type ResolvedDriftPolicy = Required<{ [Part in keyof DriftReactions]: DriftReaction }>;

export function resolveDriftPolicy(policy: DriftPolicy): ResolvedDriftPolicy {
  if (typeof policy === 'string') return { model: policy, tools: policy, instructions: policy };
  const { model = 'warn', tools = 'warn', instructions = 'warn' } = policy;
  return { model, tools, instructions };
}

/** The same policy, of which only refusals are left: what is to be reported is reported elsewhere. */
export function refusalsOf(policy: ResolvedDriftPolicy): ResolvedDriftPolicy {
  const only = (reaction: DriftReaction): DriftReaction => (reaction === 'error' ? 'error' : 'ignore');
  return { model: only(policy.model), tools: only(policy.tools), instructions: only(policy.instructions) };
}

/** What of the difference somebody wants to hear of, and whether it is a refusal. `undefined`: nobody wants to. */
export function heededDrift(
  drift: AgentDrift,
  policy: ResolvedDriftPolicy,
): { readonly drift: AgentDrift; readonly isRefused: boolean } | undefined {
  const { model, toolsAdded, toolsRemoved, toolsChanged, instructions } = drift;
  const differs: { readonly [Part in keyof ResolvedDriftPolicy]: boolean } = {
    model: model !== undefined,
    tools: toolsAdded.length + toolsRemoved.length + toolsChanged.length > 0,
    instructions,
  };
  const parts = (Object.keys(differs) as (keyof ResolvedDriftPolicy)[]).filter((part) => differs[part]);
  const heeded = parts.filter((part) => policy[part] !== 'ignore');
  if (heeded.length === 0) return undefined;
  const { model: _model, ...rest } = drift;
  return {
    drift: {
      ...rest,
      ...(model !== undefined && heeded.includes('model') ? { model } : undefined),
      ...(heeded.includes('tools') ? undefined : { toolsAdded: [], toolsRemoved: [], toolsChanged: [] }),
      instructions: heeded.includes('instructions'),
    },
    isRefused: heeded.some((part) => policy[part] === 'error'),
  };
}
