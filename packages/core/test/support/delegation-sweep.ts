/** A crash before and after each store call of a run that delegates: one story, told again for each of them. */
import {
  classifyCheckpointId,
  defineTool,
  type ApprovalRequest,
  type ExecutionResult,
  type HandoffTarget,
  type LLMProvider,
  type SubAgent,
  type Tool,
} from '@lousho/contract';
import { mockModel, type MockResponse } from '@lousho/testing';
import { crashSweep, type CrashReport, type CrashWorld } from '@lousho/testing/crash';
import { expect } from 'vitest';
import { createAgent, type Agent } from '../../src/index.ts';
import { goOn, type CreateStore } from './sweep.ts';

/** What one process has to make its agent of. */
interface Making {
  readonly tool: (name: string, options?: Partial<Pick<Tool, 'needsApproval' | 'onInterrupted'>>) => Tool;
  /** Counts the answers that its process lived to get. */
  readonly model: (script: readonly MockResponse[]) => LLMProvider;
}
export interface Story {
  agent(making: Making): {
    readonly provider: LLMProvider;
    readonly subagents: readonly SubAgent[];
    readonly tools?: readonly Tool[];
    readonly handoffs?: readonly HandoffTarget[];
    readonly maxConcurrentTasks?: number;
    readonly awaitBackgroundOnFinish?: boolean;
  };
  readonly decide?: (request: ApprovalRequest) => boolean;
  /** Runs that work beside each other: the lead too, while its tasks are in the background. */
  readonly atOnce?: number;
  check(end: {
    readonly result: ExecutionResult;
    readonly ran: (name: string) => number;
    readonly isCrashed: boolean;
  }): void;
}

export const calls = (...names: readonly string[]): MockResponse => ({
  toolCalls: names.map((name) => ({ name })),
});

/** Two with a call each that waits for a person. */
export const mailerAndCashier = ({ tool, model }: Making): readonly SubAgent[] => [
  {
    name: 'mailer',
    description: 'Mails.',
    provider: model([calls('mail'), 'Mailed.']),
    tools: [tool('mail', { needsApproval: true })],
  },
  {
    name: 'cashier',
    description: 'Handles money.',
    provider: model([calls('look'), calls('charge'), 'Paid.']),
    tools: [tool('look'), tool('charge', { needsApproval: true })],
  },
];

/** Whatever the story: only the lead is left, and its usage is the calls that were made. */
export async function sweep(story: Story, createStore: CreateStore): Promise<CrashReport> {
  let answers = 0;
  let result: ExecutionResult | undefined;
  return crashSweep({
    createStore,
    async run(world) {
      if (world.restart === 0) answers = 0;
      const agent = agentOf(story, world, () => (answers += 1));
      result = await toEnd(agent, story);
    },
    check({ effects, crashPoint, checkpoints }) {
      if (result === undefined) throw new Error('It has no result.');
      const isCrashed = crashPoint !== undefined;
      // Only the lead is left.
      expect(checkpoints.map(({ sessionId }) => classifyCheckpointId(sessionId).kind)).toEqual(['run']);
      expect(checkpoints[0]?.checkpoint?.delegatedInFlight).toEqual([]);
      // A crash loses at most the responses that were on their way into the store: as many as there are runs at once.
      const lost = answers - result.usage.modelCalls;
      expect(lost).toBeGreaterThanOrEqual(0);
      expect(lost).toBeLessThanOrEqual(isCrashed ? (story.atOnce ?? 1) : 0);
      expect(result.usage.outputTokens).toBe(result.usage.modelCalls);
      story.check({ result, ran: (name) => effects.get(name) ?? 0, isCrashed });
    },
  });
}

function agentOf(story: Story, { store, ports, effect }: CrashWorld, onAnswer: () => void): Agent {
  const parts = story.agent({
    tool: (name, options) =>
      defineTool({
        name,
        description: `Does ${name}.`,
        input: { type: 'object' },
        ...options,
        execute() {
          effect(name);
          return `${name} done`;
        },
      }),
    model(script) {
      const model = mockModel(script, { answerBy: 'step', clock: ports.clock });
      return {
        providerId: model.providerId,
        modelId: model.modelId,
        async generate(request) {
          const response = await model.generate(request);
          onAnswer();
          return response;
        },
      };
    },
  });
  return createAgent({ store, ports, ...parts });
}

/** Starts or goes on; what waits is decided. */
async function toEnd(agent: Agent, { decide = () => true }: Story): Promise<ExecutionResult> {
  for (;;) {
    const waiting = await goOn(agent);
    if (!Array.isArray(waiting)) return waiting as ExecutionResult;
    for (const id of waiting as readonly string[]) {
      const request = await agent.approvals.get(id);
      if (request !== undefined) await agent.approvals.resolve({ id, approved: decide(request), by: 'ann' });
    }
  }
}
