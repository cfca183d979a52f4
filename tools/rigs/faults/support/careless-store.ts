/** A store as one writes it in a hurry: a file named like the id, written over. What the fault rigs must catch. */
import fs from 'node:fs';
import path from 'node:path';
import type { Checkpoint, CheckpointHistoryEntry, FullAgentStore } from '@lousho/contract';

export function carelessStore(folder: string): FullAgentStore {
  const fileOf = (id: string): string => path.join(folder, `${id}.json`);
  const load = async (id: string): Promise<Checkpoint | null> =>
    fs.existsSync(fileOf(id)) ? (JSON.parse(fs.readFileSync(fileOf(id), 'utf8')) as Checkpoint) : null;
  const checkpoints = {
    load,
    async save(id: string, checkpoint: Checkpoint): Promise<void> {
      fs.writeFileSync(fileOf(id), JSON.stringify(checkpoint));
    },
    async history(id: string): Promise<readonly CheckpointHistoryEntry[]> {
      const checkpoint = await load(id);
      if (checkpoint === null) return [];
      const { stepIndex: step, savedAt, status } = checkpoint;
      return [{ step, savedAt, status, checkpoint }];
    },
  };
  // The rigs ask for nothing else.
  return { checkpoints } as unknown as FullAgentStore;
}
