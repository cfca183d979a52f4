/** What is stored today is read by every later release: from the frozen data of each store every run goes on, and nothing in it is another. */
import { mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  parseApprovalRecord,
  parseCheckpoint,
  parseSessionRecord,
  resultOf,
  type AgentStore,
  type ExecutionResult,
  type Ports,
} from '@lousho/contract';
import { KVStore } from '@lousho/store-kv';
import { LocalStorageCheckpointStore, memoryStore } from '@lousho/store-memory';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  fixtureLines,
  fixtureOf,
  frozenLines,
  frozenNames,
  packages,
  recordsFile,
} from '../src/frozen-fixtures.ts';
import {
  frozenStores,
  namespaceOf,
  webStorageOf,
  readJson,
  recordsOf,
  type StoredRecords,
} from '../src/frozen-stores.ts';
import { plannedAgent, type PlannedAgent } from '../src/planned-agent.ts';
import { stillClock, stillPorts } from '../src/still-clock.ts';
import { DIED_AT_MS, LONG_AFTER_MS } from '../src/stored-story.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'lousho-frozen-'));
});
afterEach(() => rm(folder, { recursive: true }));

const cases = (await frozenNames()).flatMap((name) => frozenStores.map((store) => ({ name, store })));
const titled = cases.map((one) => ({ ...one, title: `${one.store.name} ${one.name}` }));

describe.each(titled)('the frozen data of $title', ({ name, store }) => {
  async function thawed(nowMs = LONG_AFTER_MS) {
    const records = await readJson<StoredRecords>(recordsFile(name));
    const ports = stillPorts(stillClock(nowMs), 'late');
    const opened = await store.open(folder, ports, { fixture: fixtureOf(store, name), records });
    return { ...opened, records, ports, ...plannedAgent({ store: opened.store, ports }) };
  }

  it('is read to the last field, in the shapes of today', async () => {
    const { store: read, records } = await thawed();
    expect(await recordsOf(read)).toEqual(inTodaysShapes(records));
  });

  it('is left as it was by being read', async () => {
    const opened = await thawed();
    await recordsOf(opened.store);
    const again = path.join(folder, 'again');
    await opened.freezeAt(again);
    expect(await contentOf(again)).toEqual(await contentOf(fixtureOf(store, name)));
  });

  it('lists what is unfinished, and what waits for a person', async () => {
    const { agent } = await thawed();
    const pending = (await agent.pending()).map(
      ({ kind, sessionId, status }) => `${kind} ${sessionId} ${status}`,
    );
    // Later fixtures may hold more: the story only grows.
    expect(pending).toEqual(
      expect.arrayContaining([
        'run aborted in-progress',
        'run asked awaiting-approval',
        'run delegating in-progress',
        'run failed in-progress',
        'run finished.fork-1 in-progress',
        'run interrupted in-progress',
        'run nested awaiting-approval',
        'run paused awaiting-approval',
        'session chat awaiting-approval',
      ]),
    );
    const waiting = (await agent.approvals.list()).map(
      ({ toolName, sessionId }) => `${toolName} of ${sessionId}`,
    );
    expect(waiting).toEqual(
      expect.arrayContaining([
        ...[
          'ask_question of asked',
          'charge of paused',
          'charge of undefined',
          'email of nested',
          'refund of chat',
        ],
      ]),
    );
  });

  it('goes on with what was interrupted, and repeats nothing that may have happened', async () => {
    const { agent, ran } = await thawed();
    const texts = async (ids: readonly string[]) => {
      const results: (ExecutionResult | null)[] = [];
      for (const id of ids) results.push(await agent.resume(id));
      return results.map((result) => result?.text);
    };
    expect(await texts(['interrupted', 'delegating', 'aborted', 'finished.fork-1', 'finished'])).toEqual([
      ...['Wrap it.', 'All done.', 'Done.', 'Done.', undefined],
    ]);
    expect(ran).toEqual([]);
    await expect(agent.resume('failed')).rejects.toMatchObject({ code: 'LOUSHO_PROVIDER_ERROR' });
    expect(await agent.pending()).toContainEqual(
      expect.objectContaining({ sessionId: 'failed', attempts: 2 }),
    );
  });

  it('tells the model which calls may have happened', async () => {
    const { agent } = await thawed();
    const result = await agent.resume('interrupted');
    const kinds = result?.messages.flatMap((message) => resultOf(message) ?? []).map(({ kind }) => kind);
    expect(kinds).toEqual(['interrupted', undefined]);
    expect(result?.usage).toMatchObject({ modelCalls: 2, inputTokens: 20, costUsd: 0.5 });
  });

  it('runs what a person approves now, each call once and with the arguments that were decided', async () => {
    const thaw = await thawed();
    const { ran, agent } = thaw;
    expect(await decided(thaw, 'paused')).toBe('Done.');
    expect(await decided(thaw, 'nested')).toBe('All done.');
    expect(await decided(thaw, 'asked', { answer: 'Lisbon' })).toBe('Booked.');
    // The run without a store, which its approval carries.
    expect(await decided(thaw, undefined)).toBe('Done.');
    expect(ran).toEqual([
      'charge {"cents":400}',
      'charge {"cents":500}',
      'email {"to":"ann@example.com"}',
      'charge {"cents":500}',
    ]);
    const left = (await agent.approvals.list()).map(({ sessionId }) => sessionId);
    for (const id of ['paused', 'nested', 'asked', undefined]) expect(left).not.toContain(id);
  });

  it('knows what was decided, and what was delivered', async () => {
    const { agent, ran, records } = await thawed();
    const { approval } = resultOf(records.checkpoints.rejected?.messages[3] as never) ?? {};
    await expect(agent.approvals.resolve({ id: approval?.id ?? '', approved: true })).rejects.toMatchObject({
      code: 'LOUSHO_APPROVAL_DECIDED',
    });
    const repeated = await agent.send('@look > Done.', { sessionId: 'finished', inputId: 'delivery-1' });
    expect([repeated.text, repeated.usage, ran]).toEqual(['Done.', records.checkpoints.finished?.usage, []]);
  });

  it('goes on with a conversation that was handed over, and with its fork', async () => {
    const thaw = await thawed();
    const { agent } = thaw;
    expect(await decided(thaw, 'chat')).toBe('Refunded.');
    const chat = agent.session({ id: 'chat' });
    expect(await chat.send('Bye.')).toMatchObject({ agentName: 'billing', text: 'Bye.', steps: 1 });
    expect(await chat.messages()).toHaveLength(14);
    const fork = agent.session({ id: 'chat-fork-1' });
    expect(await fork.send('Bye.')).toMatchObject({ agentName: 'clerk', text: 'Bye.' });
    expect(await agent.send('And now? > Now.', { sessionId: 'Limited' })).toMatchObject({ steps: 1 });
  });

  it('keeps a run to the process that holds it until its time is over', async () => {
    const { agent, store: read } = await thawed(DIED_AT_MS);
    const isHeld = read.checkpoints?.acquireLease !== undefined && store.name !== 'encrypted';
    const resumed = agent.resume('interrupted');
    if (isHeld) await expect(resumed).rejects.toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
    else expect((await resumed)?.text).toBe('Wrap it.');
  });
});

/** Where the text of a checkpoint lies whose release knew no checksums. */
const textStores: readonly (readonly [string, (text: string, ports: Ports) => AgentStore])[] = [
  [
    'a KV namespace',
    (value, ports) => new KVStore(namespaceOf(new Map([['lousho/old', { value }]])), { ports }),
  ],
  [
    'localStorage',
    (text, ports) => ({
      ...memoryStore({ ports }),
      checkpoints: new LocalStorageCheckpointStore(webStorageOf(new Map([['lousho/old', text]])), { ports }),
    }),
  ],
];

describe.each(textStores)('%s from before checkpoints had a version', (_name, open) => {
  const old = path.join(packages, 'contract/test/fixtures/version-0');

  async function holding(file: string) {
    const text = await readFile(path.join(old, file), 'utf8');
    const ports = stillPorts(stillClock(LONG_AFTER_MS), 'late');
    const store = open(text, ports);
    return { text, store, ...plannedAgent({ store, ports }) };
  }

  it('is read as the contract reads it, and has a history from the next save on', async () => {
    for (const file of await readdir(old)) {
      const { text, store } = await holding(file);
      const today = parseCheckpoint(JSON.parse(text), 'old');
      expect(await store.checkpoints?.load('old')).toEqual(today);
      expect(await store.checkpoints?.history?.('old')).toEqual([]);
      await store.checkpoints?.save('old', today);
      expect(await store.checkpoints?.history?.('old')).toMatchObject([{ checkpoint: today }]);
    }
  });

  it('holds runs that go on: a call that was open waits for the yes that it needs today', async () => {
    for (const file of [
      'only-messages.json',
      'no-status.json',
      'failed.json',
      'aborted.json',
      'waiting.json',
    ]) {
      const thaw = await holding(file);
      expect(await thaw.agent.resume('old'), file).toMatchObject({ finishReason: 'awaiting-approval' });
      expect(await decided(thaw, 'old')).toBe('Nothing more.');
      expect(thaw.ran).toEqual(['refund {"order":7}']);
    }
  });
});

/** What is stored of a story, as this release gives it to an agent. */
function inTodaysShapes({ checkpoints, histories, approvals, sessions }: StoredRecords): StoredRecords {
  const each = <Value>(
    values: { readonly [id: string]: Value },
    parse: (value: Value, id: string) => Value,
  ) => Object.fromEntries(Object.entries(values).map(([id, value]) => [id, parse(value, id)]));
  return {
    checkpoints: each(checkpoints, parseCheckpoint),
    histories: each(histories, (entries, id) =>
      entries.map((entry) => ({ ...entry, checkpoint: parseCheckpoint(entry.checkpoint, id) })),
    ),
    approvals: approvals.map((record) => parseApprovalRecord(record, record.id)),
    sessions: each(sessions, parseSessionRecord),
  };
}

/** Says yes to everything that this run waits for; the text that it comes to. */
async function decided(
  { agent }: PlannedAgent,
  sessionId: string | undefined,
  decision: { readonly answer?: string } = {},
): Promise<string> {
  const request = (await agent.approvals.list()).find((one) => one.sessionId === sessionId);
  return (await agent.approvals.resolve({ id: request?.id ?? '', approved: true, ...decision })).text;
}

/** Of a file, or of the files of a folder: their bytes. */
async function contentOf(place: string): Promise<readonly (readonly [string, string])[]> {
  const isFolder = (await stat(place)).isDirectory();
  const names = isFolder ? (await readdir(place, { recursive: true })).toSorted() : [''];
  const files = await Promise.all(
    names.map(async (name) => {
      const file = path.join(place, name);
      return (await stat(file)).isFile() ? [[name, await readFile(file, 'hex')] as const] : [];
    }),
  );
  return files.flat();
}

describe('the fixtures of stored data', () => {
  it('are as they were frozen: one is added for a new shape, and none is ever made again', async () => {
    expect(await fixtureLines()).toEqual(await frozenLines());
  });
});
