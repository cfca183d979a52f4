/** Parking: one fenced save under the run's lease, by one of those that want to. */
import { SDKError, type AgentEvent, type CheckpointStore, type InProgressCheckpoint } from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, mockModel, testPorts } from '@lousho/testing';
import { expect, it } from 'vitest';
import { agentOfDefinition } from '../src/agent-of-definition.ts';
import { executePlan, parkRun, planSend, resolveEngine } from '../src/wiring.ts';
import { inProgress } from './checkpoints.ts';

async function givenStored(
  checkpoint: InProgressCheckpoint = inProgress({ startsWithoutProgress: 10, attempts: 3 }),
) {
  const clock = manualClock();
  const ports = testPorts(clock);
  const store: CheckpointStore = memoryStore({ ports }).checkpoints;
  await store.save('job-1', checkpoint);
  const events: AgentEvent[] = [];
  const engine = resolveEngine({ ports, onEvent: (event) => events.push(event) });
  const order = {
    checkpointId: 'job-1',
    store,
    engine,
    isDue: (stored: InProgressCheckpoint) => stored.parkedAt === undefined,
  };
  return { clock, store, engine, order, events };
}

it('marks the run, keeps what is known of its failures, and gives the lease back', async () => {
  const { store, order } = await givenStored();
  expect(await parkRun(order)).toBe(true);
  expect(await store.load('job-1')).toMatchObject({
    status: 'in-progress',
    parkedAt: '2026-01-01T00:00:00.000Z',
    startsWithoutProgress: 10,
    attempts: 3,
  });
  expect(await store.acquireLease?.('job-1', 'next', 1_000)).toBeTruthy();
});

it('is done once: whoever comes second finds the mark and changes nothing', async () => {
  const { store, order } = await givenStored();
  const other = { ...order, store: { ...store } };
  const parked = await Promise.allSettled([parkRun(order), parkRun(other)]);
  expect(parked.filter((one) => one.status === 'fulfilled' && one.value)).toHaveLength(1);
  const before = await store.load('job-1');
  expect(await parkRun(order)).toBe(false);
  expect(await store.load('job-1')).toEqual(before);
});

it('is not for a run that is gone or over', async () => {
  const { store, order } = await givenStored();
  await store.delete('job-1');
  expect(await parkRun(order)).toBe(false);
  expect(await store.load('job-1')).toBeNull();
});

it('is refused while somebody executes the run', async () => {
  const { store, order } = await givenStored();
  await store.acquireLease?.('job-1', 'holder', 30_000);
  await expect(parkRun(order)).rejects.toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
  expect(await store.load('job-1')).not.toHaveProperty('parkedAt');
});

it('a recovery that is turned away is no event of the run; a person who is turned away is', async () => {
  const { store, engine, events } = await givenStored();
  await store.acquireLease?.('job-1', 'holder', 30_000);
  const plan = {
    ...planSend({
      sessionId: 'job-1',
      input: [],
      store,
      engine,
      source: agentOfDefinition({}, mockModel([]), undefined),
    }),
    whenBusy: 'refuse' as const,
  };
  const refused = (request: typeof plan.request) =>
    executePlan({ ...plan, request }).catch((error: unknown) => (error as SDKError).code);
  expect(
    await refused({ type: 'recover', isDue: () => true, forgivenStarts: 0, onProgress: () => undefined }),
  ).toBe('LOUSHO_SESSION_BUSY');
  expect(events).toEqual([]);
  expect(await refused({ type: 'resume' })).toBe('LOUSHO_SESSION_BUSY');
  expect(events.map(({ type }) => type)).toEqual(['error', 'run.done']);
});
