/** A crash before and after each store call of every way to decide, and of a steer beside a pause. */
import {
  defineTool,
  isSDKError,
  type ApprovalDecision,
  type ApprovalRequest,
  type ExecutionResult,
  type Tool,
} from '@lousho/contract';
import { mockModel, type MockResponse } from '@lousho/testing';
import { crashSweep, type CrashOutcome, type CrashWorld } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { createAgent, type Agent, type AgentConfig } from '../src/index.ts';
import { goOn, sweepEveryStore, sweepInMemory, type CreateStore } from './support/sweep.ts';

interface Story {
  readonly calls: readonly { readonly name: string; readonly args?: { readonly n: number } }[];
  readonly options?: Partial<AgentConfig>;
  /** What a person says to a request. */
  readonly decide: (request: ApprovalRequest) => Omit<ApprovalDecision, 'id'>;
  /** Before a person decides. */
  readonly thinksForMs?: number;
  /** All that wait at one moment, in the order that it gives; else one after the other, the last one first. */
  readonly atOnce?: boolean;
  /** The first process begins so. */
  begin?(agent: Agent): Promise<unknown>;
  check(end: ExecutionResult, outcome: CrashOutcome): void;
}

async function sweep(createStore: CreateStore, story: Story): Promise<void> {
  let last: ExecutionResult | undefined;
  const report = await crashSweep({
    createStore,
    async run(world) {
      const agent = agentOf(world, story);
      if (world.restart === 0) await story.begin?.(agent);
      for (;;) {
        const next = await goOn(agent);
        if (!Array.isArray(next)) {
          last = next as ExecutionResult;
          return;
        }
        await decideAll(agent, world, story, [...(next as readonly string[])].reverse());
      }
    },
    check(outcome) {
      if (last === undefined) throw new Error('It did not end.');
      expect(last).toMatchObject({ finishReason: 'stop', text: 'Done.', usage: { modelCalls: 2 } });
      story.check(last, outcome);
    },
  });
  expect(report.failures).toEqual([]);
  expect(report.points).toBeGreaterThan(20);
}

async function decideAll(
  agent: Agent,
  { ports }: CrashWorld,
  { decide, thinksForMs = 0, atOnce = false }: Story,
  ids: readonly string[],
): Promise<void> {
  if (thinksForMs > 0)
    await new Promise<void>((resolve) => ports.clock.setTimer(() => resolve(), thinksForMs));
  const one = async (id: string): Promise<unknown> => {
    const request = await agent.approvals.get(id);
    return request && agent.approvals.resolve({ ...decide(request), id, by: 'ann' });
  };
  if (atOnce) await Promise.all(ids.map(one));
  else for (const id of ids) await one(id);
}

function agentOf({ store, ports, effect }: CrashWorld, { calls, options }: Story): Agent {
  const tool = (name: string, needsApproval: boolean): Tool =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input: { type: 'object' },
      needsApproval,
      execute(args) {
        effect(name);
        effect(`${name} ${JSON.stringify(args)}`);
        return `${name} done`;
      },
    });
  const script: MockResponse[] = [{ toolCalls: calls }, 'Done.'];
  return createAgent({
    store,
    ports,
    provider: mockModel(script, { answerBy: 'step', clock: ports.clock }),
    tools: [
      tool('look', false),
      tool('glance', false),
      tool('charge', true),
      tool('refund', true),
      tool('ship', true),
    ],
    askQuestion: true,
    ...options,
  });
}

/** `look done`, `refund rejected`. A crash may have cut a call that was approved. */
function outcomes({ toolCalls }: ExecutionResult): readonly string[] {
  return toolCalls.map(({ toolName, kind = 'done' }) => `${toolName} ${kind}`);
}

sweepEveryStore('a crash at every store call', (createStore) => {
  it('of a change, an answer, a yes and a no, the last call decided first', async () => {
    await sweep(createStore(), {
      calls: [
        { name: 'charge', args: { n: 100 } },
        { name: 'look' },
        { name: 'ask_question', args: { question: 'How?', options: ['fast', 'slow'] } as never },
        { name: 'refund', args: { n: 2 } },
        { name: 'ship', args: { n: 3 } },
      ],
      decide({ toolName }) {
        if (toolName === 'ask_question') return { approved: true, answer: 'slow' };
        if (toolName === 'charge') return { approved: true, args: { n: 90 } };
        return { approved: toolName === 'ship', note: `about ${toolName}` };
      },
      check(end, { effects }) {
        for (const name of ['charge', 'ship']) expect(effects.get(name) ?? 0).toBeLessThanOrEqual(1);
        expect(effects.get('charge {"n":100}')).toBeUndefined();
        expect(effects.get('refund')).toBeUndefined();
        expect(outcomes(end).map((text) => text.replace(/(charge|ship) interrupted/, '$1 done'))).toEqual([
          'charge done',
          'look done',
          'ask_question done',
          'refund rejected',
          'ship done',
        ]);
        expect(end.toolCalls[0]?.args).toEqual({ n: 90 });
        expect(end.toolCalls[2]?.result).toEqual({ answer: 'slow', option: 1 });
        const audits = end.messages.flatMap((message) =>
          message.role === 'tool' ? [message.content[0].approval] : [],
        );
        expect(audits).toMatchObject([
          { approved: true, by: 'ann', proposedArgs: { n: 100 } },
          undefined,
          { approved: true, by: 'ann' },
          { approved: false, by: 'ann', note: 'about refund' },
          { approved: true, by: 'ann', note: 'about ship' },
        ]);
      },
    });
  }, 60_000);

  it('of a steer beside a pause: what waits still waits, and the words are there once', async () => {
    await sweep(createStore(), {
      calls: [{ name: 'charge' }, { name: 'look' }, { name: 'glance' }],
      options: { toolConcurrency: 1 },
      async begin(agent) {
        let hasSteered = false;
        const run = agent.stream('sell', { sessionId: 'order-7', inputId: 'input-1' });
        for await (const { type } of run) {
          if (type !== 'tool.start' || hasSteered) continue;
          hasSteered = true;
          run.steer('Look no further.');
        }
      },
      decide: () => ({ approved: true }),
      check(end, { effects, crashPoint }) {
        expect(effects.get('charge') ?? 0).toBeLessThanOrEqual(1);
        const words = end.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []));
        expect([['sell'], ['sell', 'Look no further.']]).toContainEqual(words);
        expect(outcomes(end)[0]).toMatch(/^charge (done|interrupted)$/);
        if (crashPoint !== undefined) return;
        expect(words).toHaveLength(2);
        expect(outcomes(end)).toEqual(['charge done', 'look done', 'glance not-run']);
      },
    });
  }, 60_000);
});

sweepInMemory('a crash at every store call', (createStore) => {
  it('of decisions at one moment', async () => {
    await sweep(createStore(), {
      calls: [{ name: 'charge' }, { name: 'look' }, { name: 'refund' }],
      atOnce: true,
      decide: ({ toolName }) => ({ approved: toolName === 'charge' }),
      check(end, { effects }) {
        expect(effects.get('charge') ?? 0).toBeLessThanOrEqual(1);
        expect(effects.get('refund')).toBeUndefined();
        expect(outcomes(end).slice(1)).toEqual(['look done', 'refund rejected']);
      },
    });
  }, 60_000);

  it('of decisions that come too late', async () => {
    await sweep(createStore(), {
      calls: [{ name: 'look' }, { name: 'charge' }, { name: 'ship' }],
      options: { approvalTtlMs: 1_000 },
      thinksForMs: 1_000,
      decide: () => ({ approved: true }),
      check(end, { effects }) {
        expect([effects.get('charge'), effects.get('ship')]).toEqual([undefined, undefined]);
        expect(outcomes(end)).toEqual(['look done', 'charge denied', 'ship denied']);
      },
    });
  }, 60_000);

  it('of calls that run one at a time when all are decided', async () => {
    await sweep(createStore(), {
      calls: [{ name: 'charge' }, { name: 'ship' }, { name: 'refund' }],
      options: { toolConcurrency: 1 },
      decide: () => ({ approved: true }),
      check(end, { effects }) {
        const cut = end.toolCalls.filter(({ kind }) => kind === 'interrupted');
        expect(cut.length).toBeLessThanOrEqual(1);
        for (const { toolName, kind } of end.toolCalls)
          expect(effects.get(toolName) ?? 0).toBe(kind === undefined ? 1 : (effects.get(toolName) ?? 0) && 1);
      },
    });
  }, 60_000);
});

it('a decision of a run without a store is made once, whatever dies', async () => {
  // Without a checkpoint store the record is the run: whoever removes it has it, and a death behind that loses the run, never the promise.
  const calls: string[] = [];
  const report = await crashSweep({
    ends: 'any',
    async run({ store, ports, effect, restart }) {
      const agent = agentOf({ store: { approvals: store.approvals }, ports, effect } as CrashWorld, {
        calls: [{ name: 'charge' }],
        decide: () => ({ approved: true }),
        check: () => undefined,
      });
      if (restart === 0) await agent.send('sell');
      for (const { id } of await agent.approvals.list()) {
        try {
          calls.push(id);
          await agent.approvals.resolve({ id, approved: true });
        } catch (error) {
          if (!isSDKError(error, 'LOUSHO_APPROVAL_ORPHANED')) throw error;
        }
      }
    },
    check: ({ effects }) => expect(effects.get('charge') ?? 0).toBeLessThanOrEqual(1),
  });
  expect(report.failures).toEqual([]);
  expect(calls.length).toBeGreaterThan(5);
}, 60_000);
