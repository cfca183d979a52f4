/** A crash before and after each store call of a handoff: it took place or it did not, never half, and whoever answered goes on. */
import {
  defineTool,
  handoffMark,
  resultOf,
  type Checkpoint,
  type ExecutionResult,
  type HandoffTarget,
  type Tool,
} from '@lousho/contract';
import { mockModel, type MockResponse } from '@lousho/testing';
import { crashSweep, type CrashOutcome, type CrashWorld } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { createAgent, type Agent } from '../src/index.ts';
import { handoffCalls, whoAnswers } from './support/shop.ts';
import { goOn, sweepEveryStore, sweepInMemory, type CreateStore } from './support/sweep.ts';

interface Story {
  /** By the number of the response in the conversation, whoever gives it. */
  readonly script: readonly MockResponse[];
  readonly needsApproval?: HandoffTarget['needsApproval'];
  readonly toolConcurrency?: number;
  /** Calls that a person rejects. */
  readonly rejects?: readonly string[];
  /** Who answers when all is over. */
  readonly answers: 'clerk' | 'billing';
  check(end: ExecutionResult, outcome: CrashOutcome): void;
}

async function sweep(createStore: CreateStore, story: Story): Promise<void> {
  let last: ExecutionResult | undefined;
  const report = await crashSweep({
    createStore,
    async run(world) {
      const agent = agentOf(world, story);
      for (;;) {
        const next = await goOn(agent);
        if (!Array.isArray(next)) {
          last = next as ExecutionResult;
          return;
        }
        for (const id of next as readonly string[]) await decide(agent, id, story);
      }
    },
    check(outcome) {
      expect(last).toMatchObject({ finishReason: 'stop', text: 'Done.', agentName: story.answers });
      for (const { checkpoint } of outcome.history) expectWhole(checkpoint);
      if (last !== undefined) story.check(last, outcome);
    },
  });
  expect(report.failures).toEqual([]);
  expect(report.points).toBeGreaterThan(10);
}

async function decide(agent: Agent, id: string, { rejects = [] }: Story): Promise<void> {
  const request = await agent.approvals.get(id);
  if (request === undefined) return;
  await agent.approvals.resolve({ id, approved: !rejects.includes(request.toolName), by: 'ann' });
}

/** Who answers, what it says, what it is recognised by and the result of the last handoff are of one and the same moment. */
function expectWhole(checkpoint: Checkpoint): void {
  const marks = checkpoint.messages.map(resultOf).map((result) => result && handoffMark(result));
  const isBilling = marks.findLast((mark) => mark !== undefined)?.to === 'billing';
  expect(whoAnswers(checkpoint)).toBe(isBilling ? 'billing: Count.' : 'the agent itself: Serve.');
  expect(checkpoint.fingerprint?.model).toBe(isBilling ? 'billing-model' : 'clerk-model');
}

function agentOf({ store, ports, effect }: CrashWorld, story: Story): Agent {
  const tool = (name: string, needsApproval: boolean): Tool =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input: { type: 'object' },
      needsApproval,
      execute(_args, { agentName }) {
        effect(name);
        return `${name} by ${agentName}`;
      },
    });
  const model = (modelId: string) => mockModel(story.script, { modelId, answerBy: 'step' });
  return createAgent({
    ...{ store, ports, toolConcurrency: story.toolConcurrency },
    name: 'clerk',
    provider: model('clerk-model'),
    instructions: 'Serve.',
    tools: [tool('look', false), tool('pay', true)],
    handoffs: [
      {
        name: 'billing',
        description: 'Knows about money.',
        provider: model('billing-model'),
        instructions: 'Count.',
        tools: [tool('count', false), tool('refund', true)],
        subagents: [
          {
            name: 'auditor',
            description: 'Audits.',
            provider: mockModel(auditing, { modelId: 'auditor-model', answerBy: 'step' }),
            tools: [tool('audit', false), tool('approve', true)],
          },
        ],
        needsApproval: story.needsApproval,
      },
    ],
  });
}

/** What the sub-agent of billing does. */
const auditing: readonly MockResponse[] = [
  { toolCalls: [{ name: 'audit' }, { name: 'approve' }] },
  'Audited.',
];

const handOver = { name: 'handoff_to_billing' };
const handBack = { name: 'handoff_to_clerk' };

/** `look done by clerk`, `pay rejected`. A crash may have cut a call that was approved. */
function outcomes({ toolCalls }: ExecutionResult): readonly string[] {
  return toolCalls.map(({ toolName, kind, result }) =>
    kind === undefined && typeof result === 'string' && !toolName.startsWith('handoff')
      ? result
      : `${toolName} ${kind ?? 'done'}`,
  );
}

sweepEveryStore('a crash at every store call', (createStore) => {
  it('of a handoff beside a call that waits, of what the target does, and of the way back', async () => {
    await sweep(createStore(), {
      script: [
        { toolCalls: [handOver, { name: 'look' }, { name: 'pay' }] },
        { toolCalls: [{ name: 'count' }, { name: 'refund' }] },
        { toolCalls: [handBack] },
        'Done.',
      ],
      rejects: ['refund'],
      answers: 'clerk',
      check(end, { effects }) {
        expect(outcomes(end).map((text) => text.replace('pay interrupted', 'pay by clerk'))).toEqual([
          'handoff_to_billing done',
          'look by clerk',
          'pay by clerk',
          'count by billing',
          'refund rejected',
          'handoff_to_clerk done',
        ]);
        expect(effects.get('pay') ?? 0).toBeLessThanOrEqual(1);
        expect(handoffCalls(end.messages)).toHaveLength(2);
      },
    });
  }, 60_000);
});

sweepInMemory('a crash at every store call', (createStore) => {
  it('of a handoff alone', async () => {
    await sweep(createStore(), {
      script: [{ toolCalls: [handOver] }, 'Done.'],
      answers: 'billing',
      check: (end) => expect(outcomes(end)).toEqual(['handoff_to_billing done']),
    });
  });

  it('of a handoff that a person must agree to, beside two calls that wait as well', async () => {
    await sweep(createStore(), {
      script: [{ toolCalls: [{ name: 'pay' }, handOver, { name: 'look' }, { name: 'pay' }] }, 'Done.'],
      needsApproval: true,
      answers: 'billing',
      check(end, { effects }) {
        // Agreed to and cut, it takes place all the same: it has no effect before it does.
        expect(outcomes(end)[1]).toBe('handoff_to_billing done');
        expect(outcomes(end)[2]).toBe('look by clerk');
        expect(effects.get('pay') ?? 0).toBeLessThanOrEqual(2);
      },
    });
  });

  it('of a sub-agent of the target that waits for a person', async () => {
    await sweep(createStore(), {
      script: [
        { toolCalls: [handOver, { name: 'look' }] },
        { toolCalls: [{ name: 'task', args: { agent: 'auditor', prompt: 'Audit.' } }, { name: 'count' }] },
        'Done.',
      ],
      answers: 'billing',
      check(end, { effects, checkpoints }) {
        expect(end.usage.delegated).toMatchObject({ runs: 1, modelCalls: 2 });
        expect(outcomes(end)[2]).toContain('Audited.');
        expect(effects.get('approve') ?? 0).toBeLessThanOrEqual(1);
        expect(checkpoints).toHaveLength(1);
      },
    });
  }, 60_000);

  it('of a handoff that a person rejects', async () => {
    await sweep(createStore(), {
      script: [{ toolCalls: [{ name: 'look' }, handOver] }, 'Done.'],
      needsApproval: true,
      rejects: ['handoff_to_billing'],
      answers: 'clerk',
      check: (end) => expect(outcomes(end)).toEqual(['look by clerk', 'handoff_to_billing rejected']),
    });
  });

  it('of several handoffs in one response, one call at a time', async () => {
    await sweep(createStore(), {
      script: [{ toolCalls: [handOver, { name: 'look' }, handOver, { name: 'look' }, handOver] }, 'Done.'],
      toolConcurrency: 1,
      answers: 'billing',
      check(end) {
        expect(outcomes(end)).toEqual([
          'handoff_to_billing done',
          'look by clerk',
          'handoff_to_billing not-run',
          'look by clerk',
          'handoff_to_billing not-run',
        ]);
      },
    });
  });
});
