/** The code blocks that Lousho began with and that say `memoryStore`: they do and print the same over every store. See seed-snippets/README.md. */
import path from 'node:path';
import {
  getCheckpointHistory,
  type AgentStore,
  type Checkpoint,
  type FullAgentStore,
  type StoreOptions,
  type Tool,
} from '@lousho/contract';
import { fileStore } from '@lousho/store-file';
import { memoryStore } from '@lousho/store-memory';
import { SqliteStore } from '@lousho/store-sqlite';
import { manualClock, mockModel, testPorts } from '@lousho/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ToolRegistry, createAgent } from '../src/index.ts';
import { lines, refusal, rejection, results } from './support/read.ts';
import { runSnippet } from './support/snippets.ts';
import { checkpointsWith, storeOf, threeMethods } from './support/stores.ts';
import { emailTool, failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { later, until } from './support/wait.ts';
import { temporaryFolder } from './support/world.ts';

const askForEmail = { toolCalls: [{ name: 'email', args: { to: 'team@example.com' } }] };
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

async function stored(store: AgentStore, id: string): Promise<Checkpoint | null | undefined> {
  return store.checkpoints?.load(id);
}

const stores: readonly (readonly [string, (place: string, options?: StoreOptions) => FullAgentStore])[] = [
  ['memory', (_place, options) => memoryStore(options)],
  ['sqlite', (place, options) => new SqliteStore(`${place}.db`, options)],
  ['file', (place, options) => fileStore(place, options)],
];

describe.each(stores)('over %s', (_kind, openAt) => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  const opened: FullAgentStore[] = [];
  beforeEach(async () => {
    folder = await temporaryFolder();
  });
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close();
    await folder.remove();
  });
  /** A store of its own. */
  function openStore(options?: StoreOptions): FullAgentStore {
    const store = openAt(path.join(folder.path, String(opened.length)), options);
    opened.push(store);
    return store;
  }

  /** `chat-42` waits for a yes to one email. */
  async function givenPausedChat() {
    const store = openStore();
    const email = emailTool();
    const agent = createAgent({ provider: mockModel([askForEmail]), tools: [email.tool], store });
    const { approvalId: id = '' } = await agent.send('Email the whole team', { sessionId: 'chat-42' });
    return { store, email, id };
  }

  describe('en 5: recovery in the background', () => {
    it('finishes the order without a second charge, and ends', async () => {
      const complained = vi.spyOn(console, 'error');
      const run = await runSnippet('en-05-recovery-in-the-background', { store: openStore() });
      expect(run.error).toBeUndefined();
      expect(run.printed).toEqual([['order-7: Order charged and shipped.'], [1]]);
      expect(complained).not.toHaveBeenCalled();
      expect(await run.agents[0]?.pending()).toEqual([]);
    });
  });

  describe.each([
    ['en 2', 'en-02-awaiting-approval', 'agent.approvals.resolve()'],
    ['en 13', 'en-13-executor-awaiting-approval', 'resumeAfterApproval()'],
    ['ar 3', 'ar-03-executor-awaiting-approval', 'resumeAfterApproval()'],
  ])('%s: a paused session', (_block, name, remedy) => {
    const globalsOf = (provider: unknown, store: AgentStore) => ({
      provider,
      agent: {},
      checkpointStore: store.checkpoints,
    });

    it('refuses input, prints what it waits for, and changes nothing', async () => {
      const { store, email, id } = await givenPausedChat();
      const before = await stored(store, 'chat-42');
      const provider = mockModel([]);
      const run = await runSnippet(name, { globals: globalsOf(provider, store), store });
      expect(run.error).toBeUndefined();
      expect(run.printed).toEqual([[`Waiting on approval ${id} - resolve it with ${remedy} first.`]]);
      expect([provider.calls.length, email.runs.length]).toEqual([0, 0]);
      expect(await stored(store, 'chat-42')).toEqual(before);
    });

    it('that is not there is simply a new one', async () => {
      const store = openStore();
      const provider = mockModel(['Not yet.']);
      const run = await runSnippet(name, { globals: globalsOf(provider, store), store });
      expect(run.error).toBeUndefined();
      expect(run.printed).toEqual([]);
      expect(await stored(store, 'chat-42')).toMatchObject({ status: 'finished' });
    });
  });

  describe.each([
    ['en 3', 'en-03-approve'],
    ['en 14', 'en-14-resume-after-approval'],
    ['ar 4', 'ar-04-resume-after-approval'],
  ])('%s: an approval', (_block, name) => {
    function givenMailer(...script: Parameters<typeof mockModel>[0]) {
      const store = openStore();
      const email = emailTool();
      const tools = [email.tool as Tool];
      const provider = mockModel(script);
      const globals = {
        provider,
        agent: {},
        input: 'Email the whole team',
        toolRegistry: new ToolRegistry(tools),
        approvalStore: store.approvals,
        checkpointStore: store.checkpoints,
      };
      return { store, email, provider, setting: { globals, tools, store } };
    }

    it('lets the run go on to its end', async () => {
      const { store, email, setting } = givenMailer(askForEmail, 'Sent.');
      const run = await runSnippet(name, setting);
      expect(run.error).toBeUndefined();
      expect(run.printed).toEqual([['stop']]);
      expect(email.runs).toHaveLength(1);
      expect(email.contexts[0]?.approval?.id).toMatch(/^chat-42\.apr-/);
      const history = await store.checkpoints.history('chat-42');
      expect(history.map(({ status }) => status).reverse()).toEqual([
        'in-progress',
        'awaiting-approval',
        // The decision, the start of the call, its result.
        'in-progress',
        'in-progress',
        'in-progress',
        'finished',
      ]);
      expect(await store.approvals.list()).toEqual([]);
    });

    it('may be followed by another one', async () => {
      const { store, email, setting } = givenMailer(askForEmail, askForEmail, 'Sent.');
      const run = await runSnippet(name, setting);
      expect(run.printed).toEqual([['awaiting-approval']]);
      expect(email.runs).toHaveLength(1);
      const [next] = await store.approvals.list();
      expect(next?.id).not.toBe(email.contexts[0]?.approval?.id);
      const agent = createAgent({ provider: mockModel(['Sent.']), tools: setting.tools, store });
      expect((await agent.approvals.resolve({ id: next?.id ?? '', approved: true })).finishReason).toBe(
        'stop',
      );
    });

    it('prints nothing when nothing waits', async () => {
      const { setting } = givenMailer('No need.');
      expect((await runSnippet(name, setting)).printed).toEqual([]);
    });
  });

  describe('en 6: a job that is delivered more than once', () => {
    type HandleDelivery = (deliveryId: string, payload: string) => Promise<void>;

    async function givenHandler(script: Parameters<typeof mockModel>[0], tools: readonly Tool[]) {
      const store = openStore();
      const provider = mockModel(script);
      const run = await runSnippet('en-06-run-a-job-once', { globals: { provider }, tools, store });
      expect(run.error).toBeUndefined();
      return { handle: run.module.handleDelivery as HandleDelivery, provider, store, agent: run.agents[0] };
    }

    it('runs once', async () => {
      const { handle, provider, store } = await givenHandler(['Done.'], []);
      for (let delivery = 0; delivery < 3; delivery += 1) await handle('d1', 'do it');
      expect(provider.calls).toHaveLength(1);
      expect(await stored(store, 'job-d1')).toMatchObject({ status: 'finished' });
    });

    it('is resumed, not sent again, when it was interrupted', async () => {
      const work = failingOnceTool('work');
      const { handle, store } = await givenHandler([{ toolCalls: [{ name: 'work' }] }, 'Done.'], [work.tool]);
      await rejection(handle('d2', 'do it'));
      await handle('d2', 'do it');
      const checkpoint = await stored(store, 'job-d2');
      expect(checkpoint?.status).toBe('finished');
      expect(lines(checkpoint?.messages ?? []).filter((line) => line === 'user do it')).toHaveLength(1);
    });

    it('stays as it is while it waits for a person', async () => {
      const charge = gatedTool('charge');
      const { handle, provider, store } = await givenHandler(
        [{ toolCalls: [{ name: 'charge' }] }],
        [charge.tool],
      );
      await handle('d3', 'do it');
      await handle('d3', 'do it');
      expect([provider.calls.length, charge.runs.length]).toEqual([1, 0]);
      expect(await store.approvals.list()).toHaveLength(1);
    });

    it('would run twice with a plain send', async () => {
      const { provider, agent } = await givenHandler(['Done.', 'Done.'], []);
      await agent?.send('do it', { sessionId: 'job-d4' });
      await agent?.send('do it', { sessionId: 'job-d4' });
      expect(provider.calls).toHaveLength(2);
    });
  });

  describe.each([
    ['en 7', 'en-07-call-id'],
    ['ar 5', 'ar-05-call-id'],
  ])('%s: the call id as idempotency key', (_block, name) => {
    it('makes one charge of a call that a crash repeats', async () => {
      const keys: string[] = [];
      const payments = {
        async charge(_amount: number, { idempotencyKey }: { readonly idempotencyKey: string }) {
          keys.push(idempotencyKey);
          // The service has it; the process dies before it hears so.
          if (keys.length === 1) await new Promise(() => undefined);
          return { id: 'ch_1' };
        },
      };
      const { tools, error } = await runSnippet(name, { globals: { payments } });
      expect(error).toBeUndefined();
      // Its code looks the service up when it runs.
      Object.assign(globalThis, { payments });
      const clock = manualClock();
      const store = openStore({ ports: { clock } });
      const call = { toolCalls: [{ name: 'charge_card', args: { amount: 5 } }] };
      const dying = createAgent({
        provider: mockModel([call]),
        tools,
        store,
        ports: testPorts(manualClock()),
      });
      void later(dying.send('charge', { sessionId: 'order-7' }));
      await until(() => keys.length === 1);
      // Long enough for a store whose holders have clocks of their own, too.
      await clock.advance(60_001);
      const provider = mockModel(['Charged.']);
      const other = storeOf(checkpointsWith(store.checkpoints, {}), { approvals: store.approvals });
      const agent = createAgent({ provider, tools, store: other, ports: testPorts(clock) });
      await agent.resume('order-7');
      expect(keys).toHaveLength(2);
      expect(new Set(keys).size).toBe(1);
      expect(results(provider.calls[0]?.messages ?? []).map(({ result }) => result)).toEqual([
        { id: 'ch_1' },
      ]);
      Reflect.deleteProperty(globalThis, 'payments');
    });
  });

  describe('en 8: a business key on a gated tool', () => {
    it('files one claim of two calls that were both approved', async () => {
      const requests: string[] = [];
      const filed = new Map<string, { readonly id: string }>();
      const claims = {
        async file(
          { claimId }: { readonly claimId: string },
          { idempotencyKey }: { readonly idempotencyKey: string },
        ) {
          requests.push(idempotencyKey);
          const known = filed.get(idempotencyKey) ?? { id: `filed-${claimId}` };
          filed.set(idempotencyKey, known);
          return known;
        },
      };
      const { tools, error } = await runSnippet('en-08-business-key', { globals: { claims } });
      expect(error).toBeUndefined();
      Object.assign(globalThis, { claims });
      const file = { toolCalls: [{ name: 'file_claim', args: { claimId: 'c1' } }] };
      const agent = createAgent({ provider: mockModel([file, file, 'Filed.']), tools, store: openStore() });
      const first = await agent.send('file it', { sessionId: 'claim-1' });
      const second = await agent.approvals.resolve({ id: first.approvalId ?? '', approved: true });
      const result = await agent.approvals.resolve({ id: second.approvalId ?? '', approved: true });
      expect(requests).toEqual(['claim:c1', 'claim:c1']);
      expect(filed.size).toBe(1);
      expect(new Set(results(result.messages).map(({ toolCallId }) => toolCallId)).size).toBe(2);
      Reflect.deleteProperty(globalThis, 'claims');
    });
  });

  describe.each([
    ['en 9', 'en-09-history'],
    ['ar 6', 'ar-06-history'],
  ])('%s: the history of a run', (_block, name) => {
    it('is printed newest first, and outlives its checkpoint', async () => {
      const store = openStore({ historyLimit: 20 });
      const work = spyTool('work');
      const provider = mockModel([{ toolCalls: [{ name: 'work' }] }, 'Done.']);
      await createAgent({ provider, tools: [work.tool], store }).send('go', { sessionId: 'chat-42' });
      const run = await runSnippet(name, { store });
      expect(run.error).toBeUndefined();
      expect(run.memoryStoreOptions).toEqual([{ historyLimit: 20 }]);
      expect(run.printed).toEqual([
        [2, 'finished', isoTime, 4],
        [1, 'in-progress', isoTime, 3],
        [1, 'in-progress', isoTime, 2],
      ]);
      expect(await store.checkpoints.load('chat-42')).toBeNull();
      expect(await store.checkpoints.history('chat-42')).toHaveLength(3);
      await store.checkpoints.delete('chat-42');
      expect(await store.checkpoints.history('chat-42')).toEqual([]);
    });

    it('prints nothing of an empty store', async () => {
      const run = await runSnippet(name, {});
      expect(run.error).toBeUndefined();
      expect(run.printed).toEqual([]);
    });

    it('is empty with a limit of 0, and undefined where a store keeps none', async () => {
      const { checkpoints } = openStore({ historyLimit: 0 });
      const agent = createAgent({ provider: mockModel(['Hello.']), store: { checkpoints } });
      await agent.send('hi', { sessionId: 'chat-42' });
      expect(await getCheckpointHistory(checkpoints, 'chat-42')).toEqual([]);
      expect(await getCheckpointHistory(threeMethods(checkpoints), 'chat-42')).toBeUndefined();
    });
  });

  describe.each([
    ['en 11', 'en-11-changed-agent'],
    ['ar 9', 'ar-09-changed-agent'],
  ])('%s: a changed agent', (_block, name) => {
    it('is refused by name of what changed, and the run stays as it was', async () => {
      const store = openStore();
      const old = createAgent({
        provider: mockModel([{ toolCalls: [{ name: 'a' }] }, new Error('down')], { modelId: 'old-model' }),
        tools: [spyTool('a').tool],
        store,
        retry: { maxRetries: 0 },
      });
      await rejection(old.send('go', { sessionId: 'job-1' }));
      const before = JSON.stringify(await stored(store, 'job-1'));
      const provider = mockModel([], { modelId: 'new-model' });
      const b = spyTool('b');
      const { error } = await runSnippet(name, { globals: { provider }, tools: [b.tool], store });
      const refused = await refusal(Promise.reject(error as Error), 'LOUSHO_AGENT_DRIFT');
      expect(refused.details.drift).toMatchObject({
        model: { saved: 'old-model', current: 'new-model' },
        toolsAdded: ['b'],
        toolsRemoved: ['a'],
      });
      expect([provider.calls.length, b.runs.length]).toEqual([0, 0]);
      expect(JSON.stringify(await stored(store, 'job-1'))).toBe(before);
    });

    it('has nothing to resume in an empty store', async () => {
      const provider = mockModel([]);
      const run = await runSnippet(name, { globals: { provider } });
      expect(run.error).toBeUndefined();
      expect(provider.calls).toHaveLength(0);
    });
  });

  describe('forks', () => {
    const callWeather = { toolCalls: [{ name: 'weather', id: 'call_weather' }] };
    const trip = (words: string) => [
      'user Plan my trip',
      'assistant weather#call_weather',
      ...(words === '' ? [] : [words]),
    ];

    it.each([
      ['en 10', 'en-10-fork-and-compare', true],
      ['ar 8', 'ar-08-fork', false],
    ])(
      '%s: an extra message is sent behind the result, and nothing runs again',
      async (_block, name, compares) => {
        const weather = spyTool('weather', () => 'sunny');
        const provider = mockModel([callWeather, 'Sunny plan.', 'Rainy plan.']);
        const store = openStore();
        const run = await runSnippet(name, { globals: { provider }, tools: [weather.tool], store });
        expect(run.error).toBeUndefined();
        expect(weather.runs).toHaveLength(1);
        expect(lines(provider.calls.at(-1)?.messages ?? [])).toEqual([
          ...trip('tool call_weather "sunny"'),
          'user It will rain, plan for that.',
        ]);
        expect(run.printed).toEqual(compares ? [[2, 2, 2, []]] : []);
        expect((await stored(store, 'trip'))?.messages.at(-1)?.content).toEqual([
          { type: 'text', text: 'Sunny plan.' },
        ]);
        expect(await store.checkpoints.history('trip')).toHaveLength(3);
      },
    );

    it.each([
      ['en 15', 'en-15-executor-fork'],
      ['ar 7', 'ar-07-executor-fork'],
    ])('%s: a replaced result stands where the other one stood', async (_block, name) => {
      const weather = spyTool('weather', () => ({ forecast: 'sun' }));
      const provider = mockModel([callWeather, 'Sunny plan.', 'Rainy plan.']);
      const store = openStore();
      const toolRegistry = new ToolRegistry([weather.tool]);
      const run = await runSnippet(name, { globals: { provider, toolRegistry, agent: {} }, store });
      expect(run.error).toBeUndefined();
      expect(weather.runs).toHaveLength(1);
      expect(lines(provider.calls.at(-1)?.messages ?? [])).toEqual(
        trip('tool call_weather {"forecast":"rain"}'),
      );
      expect(run.printed).toEqual([[1, 2, 2, []]]);
      expect(lines((await stored(store, 'trip'))?.messages ?? []).at(-1)).toBe('assistant Sunny plan.');
      expect((await stored(store, 'trip.fork-1'))?.forkedFrom).toEqual({ sessionId: 'trip', step: 1 });
    });
  });
});
