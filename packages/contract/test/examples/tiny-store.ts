import { assertCheckpointId, frozenCopy, type AgentStore, type Checkpoint } from '@lousho/contract';

export function tinyStore(): AgentStore {
  const saved = new Map<string, Checkpoint>();
  const checked = (id: string): string => {
    assertCheckpointId(id);
    return id;
  };
  return {
    checkpoints: {
      save: async (id, checkpoint) => void saved.set(checked(id), frozenCopy(checkpoint)),
      load: async (id) => saved.get(checked(id)) ?? null,
      delete: async (id) => void saved.delete(checked(id)),
    },
  };
}
