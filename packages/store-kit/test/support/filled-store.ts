/** A store with everything that there is to copy, and what a store holds, to compare. */
import type { AgentStore, Checkpoint, FullAgentStore } from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { approvalRecord, inProgress, nextStep, sessionRecord, waiting } from './records.ts';

/** Of each of the two runs with a history. */
export const SAVES = 4;

/** Two runs with a history, one that waits, its approval, and a conversation. */
export async function givenStore(): Promise<FullAgentStore> {
  const store = memoryStore();
  await fill(store);
  return store;
}

export async function fill(store: AgentStore): Promise<void> {
  let state = inProgress();
  for (let save = 0; save < SAVES; save += 1) {
    await store.checkpoints?.save('order-7', state);
    // Two saves that are just the same are two entries.
    if (save !== 1) state = nextStep(state, `save ${save}`);
    const { status: _status, lastError: _error, ...rest } = state;
    const isLast = save === SAVES - 1;
    const end: Checkpoint = { ...rest, status: 'finished', finishReason: 'stop' };
    await store.checkpoints?.save('order-8', isLast ? end : state);
  }
  await store.checkpoints?.save('chat-1.turn-3', inProgress());
  await store.checkpoints?.save('chat-1.turn-3', waiting('a-1'));
  await store.approvals?.save(approvalRecord('a-1', { sessionId: 'chat-1', checkpointId: 'chat-1.turn-3' }));
  await store.sessions?.saveIfRevision(sessionRecord('chat-1'), 0);
}

export async function contentOf({ checkpoints, approvals, sessions }: AgentStore) {
  const listed = (await checkpoints?.list?.()) ?? [];
  const runs: Record<string, unknown> = {};
  for (const { sessionId } of listed) runs[sessionId] = await checkpoints?.history?.(sessionId);
  const sessionIds = [...((await sessions?.list?.()) ?? [])];
  return {
    listed,
    runs,
    approvals: await approvals?.list(),
    sessions: await Promise.all(sessionIds.map(async (id) => sessions?.load(id))),
  };
}
