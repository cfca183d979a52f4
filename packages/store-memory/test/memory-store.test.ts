import { appendFrozen, isDeepFrozen, type Message } from '@lousho/contract';
import { manualClock, testPorts } from '@lousho/testing';
import { expect, it } from 'vitest';
import { memoryStore } from '../src/index.ts';
import { approvalRecord, finished, hello, inProgress, sessionRecord } from './fixtures.ts';

const malformedIds = ['', '..', '../evil', 'a/../../b', '.hidden', 'ends.', 'Ünïcode', 'x'.repeat(301)];

it('gives back what was saved, with fields that it does not know', async () => {
  const { checkpoints } = memoryStore();
  const saved = inProgress({ futureField: { deep: [1, null] } } as object);
  await checkpoints.save('order-7', saved);
  expect(await checkpoints.load('order-7')).toEqual(saved);
  expect(await checkpoints.load('order-8')).toBeNull();
});

it('shares what is frozen, so that a save costs nothing that grows with the transcript', async () => {
  const { checkpoints } = memoryStore();
  const saved = inProgress({ messages: appendFrozen([hello], [hello]) });
  await checkpoints.save('order-7', saved);
  expect(await checkpoints.load('order-7')).toBe(saved);
  expect((await checkpoints.history('order-7'))[0]?.checkpoint).toBe(saved);
});

it('touches no message of a frozen checkpoint when it saves it', async () => {
  const { checkpoints } = memoryStore();
  const messages = appendFrozen(
    [],
    Array.from({ length: 1_000 }, (): Message => ({ ...hello })),
  );
  let reads = 0;
  const watched = new Proxy(messages, {
    get: (list, key, receiver): unknown => ((reads += 1), Reflect.get(list, key, receiver)),
    ownKeys: (list) => ((reads += 1), Reflect.ownKeys(list)),
  });
  const checkpoint = inProgress({ messages: watched });
  isDeepFrozen(checkpoint);
  reads = 0;
  await checkpoints.save('order-7', checkpoint);
  // The history looks at the length; nothing looks inside.
  expect(reads).toBeLessThanOrEqual(1);
});

it('copies what is not frozen: changing it later changes no save', async () => {
  const { checkpoints, approvals, sessions } = memoryStore();
  const checkpoint = structuredClone(inProgress()) as object as { messages: Message[] };
  const record = structuredClone(approvalRecord('a-1')) as { toolName: string };
  const session = structuredClone(sessionRecord('chat')) as object as { messages: Message[] };
  await checkpoints.save('order-7', checkpoint as never);
  await approvals.save(record as never);
  await sessions.saveIfRevision(session as never, 0);
  checkpoint.messages.push(hello);
  record.toolName = 'other';
  session.messages.length = 0;
  expect(await checkpoints.load('order-7')).toEqual(inProgress());
  expect(await approvals.load('a-1')).toEqual(approvalRecord('a-1'));
  expect(await sessions.load('chat')).toMatchObject({ messages: [hello] });
});

it('returns frozen values only', async () => {
  const { checkpoints, approvals, sessions } = memoryStore();
  await checkpoints.save('order-7', structuredClone(inProgress()));
  await approvals.save(structuredClone(approvalRecord('a-1')));
  await sessions.saveIfRevision(structuredClone(sessionRecord('chat')), 0);
  const returned = [
    await checkpoints.load('order-7'),
    (await checkpoints.history('order-7'))[0],
    (await checkpoints.list())[0]?.checkpoint,
    await approvals.load('a-1'),
    await sessions.load('chat'),
  ];
  for (const value of returned) {
    expect(value).toBeTypeOf('object');
    expect(isDeepFrozen(value)).toBe(true);
  }
});

it('lists the latest of every id, oldest save first, then by id', async () => {
  const { checkpoints } = memoryStore();
  const at = (savedAt: string) => ({ savedAt });
  await checkpoints.save('late', finished(at('2026-01-03T00:00:00.000Z')));
  await checkpoints.save('b', inProgress(at('2026-01-02T00:00:00.000Z')));
  await checkpoints.save('a', inProgress(at('2026-01-02T00:00:00.000Z')));
  await checkpoints.save('moved', inProgress(at('2026-01-01T00:00:00.000Z')));
  await checkpoints.save('moved', finished(at('2026-01-04T00:00:00.000Z')));
  const idsOf = async (options?: object): Promise<string[]> =>
    (await checkpoints.list(options)).map(({ sessionId }) => sessionId);
  expect(await idsOf()).toEqual(['a', 'b', 'late', 'moved']);
  expect(await idsOf({ status: 'finished' })).toEqual(['late', 'moved']);
  expect(await idsOf({ status: ['in-progress', 'awaiting-approval'] })).toEqual(['a', 'b']);
  expect(await idsOf({ status: [] })).toEqual([]);
});

it('never looks at a finished run when it is asked for unfinished ones', async () => {
  const { checkpoints } = memoryStore();
  const untouchable = new Proxy(finished(), {
    get(checkpoint, key, receiver) {
      if (key === 'status' && listing) throw new Error('looked at');
      return Reflect.get(checkpoint, key, receiver) as unknown;
    },
  });
  let listing = false;
  await checkpoints.save('done', untouchable);
  await checkpoints.save('was-open', inProgress());
  await checkpoints.save('was-open', untouchable);
  await checkpoints.save('open', inProgress());
  listing = true;
  const entries = await checkpoints.listHeaders({ status: ['in-progress', 'awaiting-approval'] });
  expect(entries.map(({ sessionId }) => sessionId)).toEqual(['open']);
});

it('lists headers in the same order, without the content', async () => {
  const { checkpoints } = memoryStore();
  await checkpoints.save('b', inProgress({ businessState: { large: true } }));
  await checkpoints.save('a', finished());
  const entries = await checkpoints.listHeaders();
  expect(entries.map(({ sessionId, status }) => [sessionId, status])).toEqual([
    ['a', 'finished'],
    ['b', 'in-progress'],
  ]);
  expect(entries[1]?.header).toMatchObject({ messageCount: 1, runId: 'run-0001' });
  expect(Object.keys(entries[1]?.header ?? {})).not.toEqual(
    expect.arrayContaining(['messages', 'businessState']),
  );
});

it('counts data without a status as unfinished', async () => {
  const { checkpoints } = memoryStore();
  const { status: _status, ...old } = inProgress();
  await checkpoints.save('old', old as never);
  expect(await checkpoints.list({ status: 'in-progress' })).toMatchObject([{ status: 'in-progress' }]);
  expect(await checkpoints.history('old')).toMatchObject([{ status: 'in-progress' }]);
});

it('keeps ids apart that differ in case, and takes ids of 300 characters', async () => {
  const { checkpoints } = memoryStore();
  await checkpoints.save('Alice', inProgress({ runId: 'upper' }));
  await checkpoints.save('alice', inProgress({ runId: 'lower' }));
  await checkpoints.delete('alice');
  expect(await checkpoints.load('Alice')).toMatchObject({ runId: 'upper' });
  expect(await checkpoints.load('alice')).toBeNull();
  const longId = 'x'.repeat(300);
  await checkpoints.save(longId, inProgress());
  expect(await checkpoints.load(longId)).not.toBeNull();
});

it.each(malformedIds)('refuses the id "%s"', async (id) => {
  const { checkpoints, approvals, sessions } = memoryStore();
  const refused = { code: 'LOUSHO_SESSION_ID_INVALID' };
  await expect(checkpoints.save(id, inProgress())).rejects.toMatchObject(refused);
  await expect(checkpoints.load(id)).rejects.toMatchObject(refused);
  await expect(checkpoints.acquireLease(id, 'owner', 1_000)).rejects.toMatchObject(refused);
  await expect(approvals.save(approvalRecord(id))).rejects.toMatchObject(refused);
  await expect(sessions.saveIfRevision(sessionRecord(id), 0)).rejects.toMatchObject(refused);
  expect(await approvals.load(id)).toBeNull();
  expect(await approvals.delete(id)).toBe(false);
});

it('lists approvals oldest first, by session too, and keeps one that was only loaded', async () => {
  const { approvals } = memoryStore();
  await approvals.save(approvalRecord('third', { createdAt: '2026-01-03T00:00:00.000Z', sessionId: 's' }));
  await approvals.save(approvalRecord('first', { createdAt: '2026-01-01T00:00:00.000Z', sessionId: 's' }));
  await approvals.save(approvalRecord('second', { createdAt: '2026-01-02T00:00:00.000Z' }));
  await approvals.load('first');
  expect((await approvals.list()).map(({ id }) => id)).toEqual(['first', 'second', 'third']);
  expect((await approvals.list({ sessionId: 's' })).map(({ id }) => id)).toEqual(['first', 'third']);
  await approvals.save(approvalRecord('second', { toolName: 'replaced' }));
  expect(await approvals.load('second')).toMatchObject({ toolName: 'replaced' });
});

it('tells exactly one of many callers that its delete removed the approval', async () => {
  const { approvals } = memoryStore();
  await approvals.save(approvalRecord('a-1'));
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => approvals.delete('a-1')));
  expect(outcomes.filter((removed) => removed)).toHaveLength(1);
  expect(await approvals.load('a-1')).toBeNull();
});

it('stores a session for exactly one of many writers that saw the same revision', async () => {
  const { sessions } = memoryStore();
  const write = (turn: number, expected: number): Promise<boolean> =>
    sessions.saveIfRevision(sessionRecord('chat', { turn }), expected);
  const outcomes = await Promise.all(Array.from({ length: 20 }, (_, turn) => write(turn, 0)));
  expect(outcomes.filter((saved) => saved)).toHaveLength(1);
  expect(await sessions.load('chat')).toMatchObject({ revision: 1, turn: 0 });
  expect(await write(7, 0)).toBe(false);
  expect(await write(7, 1)).toBe(true);
  expect(await sessions.load('chat')).toMatchObject({ revision: 2, turn: 7 });
  expect(await sessions.list?.()).toEqual(['chat']);
  await sessions.delete('chat');
  expect(await sessions.load('chat')).toBeNull();
  expect(await write(1, 2)).toBe(false);
});

it('lets go of everything when it is closed, twice is fine, and then says so', async () => {
  const store = memoryStore({ ports: testPorts(manualClock()) });
  await store.checkpoints.save('order-7', inProgress());
  await store.close();
  await store.close();
  await store.checkpoints[Symbol.asyncDispose]();
  const closed = (operation: string) => ({ code: 'LOUSHO_STORE_CLOSED', details: { operation } });
  await expect(store.checkpoints.load('order-7')).rejects.toMatchObject(closed('load'));
  await expect(store.checkpoints.list()).rejects.toMatchObject(closed('list'));
  await expect(store.checkpoints.saveIfLeased('order-7', inProgress(), 'o')).rejects.toMatchObject(
    closed('saveIfLeased'),
  );
  await expect(store.approvals.load('a-1')).rejects.toMatchObject(closed('approvals.load'));
  await expect(store.sessions.load('chat')).rejects.toMatchObject(closed('sessions.load'));
  await expect(store.prune({ olderThanMs: 0 })).rejects.toMatchObject(closed('prune'));
});

it('is closed as a whole through its checkpoint part or the end of its block', async () => {
  const byPart = memoryStore();
  await byPart.checkpoints.close();
  await expect(byPart.approvals.list()).rejects.toMatchObject({ code: 'LOUSHO_STORE_CLOSED' });
  const byBlock = memoryStore();
  await byBlock[Symbol.asyncDispose]();
  await expect(byBlock.approvals.list()).rejects.toMatchObject({ code: 'LOUSHO_STORE_CLOSED' });
});

it('says what it guarantees, and with which contract', () => {
  const store = memoryStore();
  expect(store.contractVersion).toBe(1);
  expect(store.checkpoints.claims).toEqual({
    leases: 'atomic',
    history: true,
    list: true,
    durable: 'memory',
    consistency: 'strong',
  });
});

it.each([
  ['historyLimit', -1],
  ['historyLimit', 1.5],
  ['historyMaxBytes', -1],
  ['retentionMs', Number.NaN],
  ['historyLimt', 5],
])('refuses the option %s: %d', (option, got) => {
  expect(() => memoryStore({ [option]: got })).toThrow(
    expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID', details: expect.objectContaining({ option }) }),
  );
});
