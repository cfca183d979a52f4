/** Lists: the newest state of every run, oldest save first, and headers that cost two events a run. */
import { checkpointHeader, type Checkpoint } from '@lousho/contract';
import { expect, it } from 'vitest';
import { awaitingApproval, finished, inProgress, nextStep } from './support/fixtures.ts';
import { openOnPlatform, openStore, rawDatabase, tempFile } from './support/temp-store.ts';

const at = (day: number): { readonly savedAt: string } => ({ savedAt: `2026-01-0${day}T00:00:00.000Z` });

it('lists the oldest save first, then by id, with the states as they are', async () => {
  const { checkpoints } = openStore();
  const runs: Record<string, Checkpoint> = {
    late: inProgress(at(3)),
    b: finished(at(2)),
    a: awaitingApproval('a.apr-abcd1234-1-0', at(2)),
    early: inProgress({ ...at(1), finishReason: 'aborted' }),
  };
  for (const [id, run] of Object.entries(runs)) await checkpoints.save(id, run);
  const order = ['early', 'a', 'b', 'late'];
  expect(await checkpoints.list()).toEqual(
    order.map((sessionId) => ({ sessionId, status: runs[sessionId]?.status, checkpoint: runs[sessionId] })),
  );
  expect(await checkpoints.listHeaders()).toEqual(
    order.map((sessionId) => {
      const run = runs[sessionId] ?? inProgress();
      return { sessionId, status: run.status, header: checkpointHeader(run) };
    }),
  );
});

it('lists those of one status, or of several', async () => {
  const { checkpoints } = openStore();
  await checkpoints.save('open', inProgress());
  await checkpoints.save('paused', awaitingApproval('paused.apr-abcd1234-1-0'));
  await checkpoints.save('done', finished());
  for (const list of [checkpoints.list.bind(checkpoints), checkpoints.listHeaders.bind(checkpoints)]) {
    const idsOf = async (...options: Parameters<typeof list>): Promise<string[]> =>
      (await list(...options)).map(({ sessionId }) => sessionId).sort();
    expect(await idsOf()).toEqual(['done', 'open', 'paused']);
    expect(await idsOf({ status: 'finished' })).toEqual(['done']);
    expect(await idsOf({ status: 'in-progress' })).toEqual(['open']);
    expect(await idsOf({ status: ['awaiting-approval', 'finished'] })).toEqual(['done', 'paused']);
    expect(await idsOf({ status: [] })).toEqual([]);
  }
});

it('follows a run through its statuses, and through a new run under its id', async () => {
  const file = tempFile();
  const { checkpoints } = openStore(file);
  const first = inProgress({ metadata: { tenant: 'one' } });
  const states: Checkpoint[] = [
    first,
    awaitingApproval('order-7.apr-abcd1234-1-0', { metadata: { tenant: 'one' } }),
    nextStep(first, 'on'),
    finished({ metadata: { tenant: 'one' }, stepIndex: 2 }),
    inProgress({ runId: 'run-0002', metadata: { tenant: 'two' }, principal: { id: 'ann' } }),
    nextStep(inProgress({ runId: 'run-0002', metadata: { tenant: 'two' }, principal: { id: 'ann' } }), 'on'),
  ];
  for (const state of states) {
    await checkpoints.save('order-7', state);
    for (const handle of [checkpoints, openStore(file).checkpoints]) {
      expect(await handle.listHeaders({ status: state.status })).toEqual([
        { sessionId: 'order-7', status: state.status, header: checkpointHeader(state) },
      ]);
    }
  }
});

it('leaves the content of runs out of their headers, and does not read it', async () => {
  const { store, statements } = openOnPlatform(tempFile());
  let run = inProgress({ businessState: { secret: 1 }, inputIds: ['i-1'] });
  await store.checkpoints.save('order-7', run);
  for (let step = 0; step < 30; step += 1) {
    run = nextStep(run, 'on');
    await store.checkpoints.save('order-7', run);
  }
  statements.length = 0;
  const [entry] = await store.checkpoints.listHeaders();
  expect(entry?.header).toEqual(checkpointHeader(run));
  expect(entry?.header).not.toHaveProperty('businessState');
  expect(statements.filter((sql) => sql.startsWith('SELECT'))).toHaveLength(1);
});

it('leaves out a run that goes while the list is made', async () => {
  const { checkpoints } = openStore();
  for (let n = 0; n < 50; n += 1) await checkpoints.save(`order-${n}`, inProgress());
  const listing = checkpoints.list();
  await checkpoints.delete('order-49');
  expect(await listing).toHaveLength(49);
});

it('finds unfinished runs through their own index, whatever the number of finished ones', async () => {
  const file = tempFile();
  const { store, statements } = openOnPlatform(file);
  await store.checkpoints.save('done', finished());
  await store.checkpoints.save('open', inProgress());
  statements.length = 0;
  const found = await store.checkpoints.listHeaders({ status: ['in-progress', 'awaiting-approval'] });
  expect(found.map(({ sessionId }) => sessionId)).toEqual(['open']);
  const query = statements.find((sql) => sql.startsWith('SELECT')) ?? '';
  const plan = rawDatabase(file).prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${query}`).all();
  expect(plan.map(({ detail }) => detail).join('\n')).toContain('USING INDEX unfinished_runs');
  expect(plan.map(({ detail }) => detail).join('\n')).not.toMatch(/SCAN (?:runs|events|facts|last)/);
});
