/** Whether the agent that resumes a run is the one that began it. Compared before any model call or tool. */
import type { AgentDrift, AgentFingerprint } from '@lousho/contract';

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
