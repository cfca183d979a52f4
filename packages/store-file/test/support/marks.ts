/** Lists of unfinished runs, which look only at those that are marked, beside lists that look at all. */
import type { FullAgentStore } from '@lousho/contract';
import { expect } from 'vitest';
import { inProgress } from './fixtures.ts';
import { openStore } from './temp-store.ts';

export const UNFINISHED = ['in-progress', 'awaiting-approval'] as const;

/** From now on a list of unfinished runs in this folder looks only at those that are marked. */
export async function givenCompleteMarks(folder: string): Promise<void> {
  const { checkpoints } = openStore(folder);
  await checkpoints.save('first-of-all', inProgress());
  await checkpoints.listHeaders({ status: UNFINISHED });
  await checkpoints.delete('first-of-all');
}

/** Nothing unfinished is missed by who looks only at what is marked. */
export async function expectMarked({ checkpoints }: Pick<FullAgentStore, 'checkpoints'>): Promise<void> {
  const all = await checkpoints.listHeaders();
  const unfinished = all.filter(({ status }) => status !== 'finished');
  expect(await checkpoints.listHeaders({ status: UNFINISHED })).toEqual(unfinished);
  // Again: the first one has tidied up.
  expect(await checkpoints.listHeaders({ status: UNFINISHED })).toEqual(unfinished);
}
