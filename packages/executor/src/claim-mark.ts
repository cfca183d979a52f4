/** A mark in the store that says: this was done. It is no run, and no list of runs shows it. */
import type { Checkpoint, Ports } from '@lousho/contract';
import { fold } from './fold.ts';
import { startRun } from './start-run.ts';

/** As a run that is over, so that every store keeps it, and prunes it by its age. */
export function claimMark(agentName: string, { clock, ids }: Ports): Checkpoint {
  const nothing = { messages: [], inputIds: [] };
  const begun = startRun({ runId: ids.random(), agentName }, nothing, nothing);
  const over = fold(begun, { type: 'finished', finishReason: 'stop' });
  return Object.freeze({ ...over, savedAt: new Date(clock.wallMs()).toISOString() });
}
