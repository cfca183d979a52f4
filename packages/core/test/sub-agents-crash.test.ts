/** A crash before and after each store call of runs that delegate: no sub-agent starts over, and nothing approved runs twice. */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import {
  classifyCheckpointId,
  defineTool,
  isSDKError,
  type AgentStore,
  type ApprovalRequest,
  type ExecutionResult,
  type HandoffTarget,
  type LLMProvider,
  type Ports,
  type SubAgent,
  type Tool,
} from '@lousho/contract';
import { fileStore } from '@lousho/store-file';
import { memoryStore } from '@lousho/store-memory';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel, type MockResponse } from '@lousho/testing';
import { crashSweep, type CrashReport, type CrashWorld } from '@lousho/testing/crash';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAgent, type Agent } from '../src/index.ts';
import { temporaryFolder } from './support/world.ts';

const stores: { readonly [name: string]: (folder: string) => (ports: Ports) => AgentStore } = {
  memory: () => (ports) => memoryStore({ ports }),
  sqlite: (folder) => (ports) => {
    const file = path.join(folder, `${ports.ids.random()}.db`);
    return new SqliteStore(file, { ports, durability: 'process' });
  },
  file: (folder) => (ports) =>
    fileStore(path.join(folder, ports.ids.random()), { ports, durability: 'process' }),
};

/** What one process has to make its agent of. */
interface Making {
  readonly tool: (name: string, options?: Partial<Pick<Tool, 'needsApproval' | 'onInterrupted'>>) => Tool;
  /** Counts the answers that its process lived to get. */
  readonly model: (script: readonly MockResponse[]) => LLMProvider;
}
interface Story {
  agent(making: Making): {
    readonly provider: LLMProvider;
    readonly subagents: readonly SubAgent[];
    readonly tools?: readonly Tool[];
    readonly handoffs?: readonly HandoffTarget[];
  };
  readonly decide?: (request: ApprovalRequest) => boolean;
  /** Sub-agents that work beside each other. */
  readonly atOnce?: number;
  check(end: {
    readonly result: ExecutionResult;
    readonly ran: (name: string) => number;
    readonly isCrashed: boolean;
  }): void;
}

async function sweep(story: Story, createStore: (ports: Ports) => AgentStore): Promise<CrashReport> {
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
      // A crash loses at most the responses that were on their way into the store: as many as there are sub-agents at once.
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
    const waiting = await sendOrWaiting(agent);
    if (!Array.isArray(waiting)) return waiting as ExecutionResult;
    for (const id of waiting as readonly string[]) {
      const request = await agent.approvals.get(id);
      if (request !== undefined) await agent.approvals.resolve({ id, approved: decide(request), by: 'ann' });
    }
  }
}

async function sendOrWaiting(agent: Agent): Promise<ExecutionResult | readonly string[]> {
  try {
    const result = await agent.send('go', { sessionId: 'order-7', inputId: 'input-1' });
    return result.approvalIds ?? result;
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_SESSION_AWAITING_APPROVAL')) return error.details.approvalIds;
    throw error;
  }
}

const task = (agent: string, prompt = `Work, ${agent}.`) => ({ name: 'task', args: { agent, prompt } });
const calls = (...names: readonly string[]): MockResponse => ({ toolCalls: names.map((name) => ({ name })) });

const kindsOf = ({ toolCalls }: ExecutionResult) => toolCalls.map(({ kind }) => kind ?? 'done');

const stories: { readonly [name: string]: Story } = {
  'of a plain delegation': {
    agent: ({ tool, model }) => ({
      provider: model([{ toolCalls: [task('clerk')] }, 'All done.']),
      subagents: [
        {
          name: 'clerk',
          description: 'Files things.',
          provider: model([calls('look'), calls('file'), 'Filed.']),
          tools: [tool('look'), tool('file')],
        },
      ],
    }),
    check({ result, ran, isCrashed }) {
      expect(result).toMatchObject({
        text: 'All done.',
        usage: { modelCalls: 5, delegated: { runs: 1, modelCalls: 3 } },
      });
      expect(ran('look') + ran('file')).toBeLessThanOrEqual(isCrashed ? 3 : 2);
      expect(result.toolCalls[0]?.result).toContain('Filed.');
    },
  },
  'of a sub-agent that waits for a person, two times': {
    agent: ({ tool, model }) => ({
      provider: model([{ toolCalls: [task('cashier')] }, 'All done.']),
      subagents: [
        {
          name: 'cashier',
          description: 'Handles money.',
          provider: model([calls('look', 'charge', 'refund'), calls('charge'), 'Paid.']),
          tools: [
            tool('look'),
            tool('charge', { needsApproval: true }),
            tool('refund', { needsApproval: true }),
          ],
        },
      ],
    }),
    decide: ({ toolName }) => toolName === 'charge',
    check({ result, ran, isCrashed }) {
      expect(result).toMatchObject({
        text: 'All done.',
        usage: { modelCalls: 5, delegated: { runs: 1, modelCalls: 3 } },
      });
      expect(ran('charge')).toBeLessThanOrEqual(2);
      expect(ran('charge')).toBeGreaterThanOrEqual(isCrashed ? 1 : 2);
      expect(ran('refund')).toBe(0);
      expect(kindsOf(result)).toEqual(['done']);
    },
  },
  'of a pause two levels down, beside a call of the lead that waits, too': {
    agent: ({ tool, model }) => ({
      provider: model([{ toolCalls: [{ name: 'log' }, task('manager'), { name: 'sign' }] }, 'All done.']),
      tools: [tool('log'), tool('sign', { needsApproval: true })],
      subagents: [
        {
          name: 'manager',
          description: 'Manages.',
          provider: model([{ toolCalls: [task('mailer')] }, 'Managed.']),
          subagents: [
            {
              name: 'mailer',
              description: 'Mails.',
              provider: model([calls('mail'), 'Mailed.']),
              tools: [tool('mail', { needsApproval: true })],
            },
          ],
        },
      ],
    }),
    check({ result, ran }) {
      expect(result).toMatchObject({
        text: 'All done.',
        usage: { modelCalls: 6, delegated: { runs: 1, modelCalls: 4 } },
      });
      expect(ran('mail')).toBeLessThanOrEqual(1);
      expect(ran('sign')).toBeLessThanOrEqual(1);
      expect(kindsOf(result).map((kind) => kind.replace('interrupted', 'done'))).toEqual([
        'done',
        'done',
        'done',
      ]);
      // Cut off inside the sub-agent, the call is its own matter: the lead hears the end of the task.
      expect(kindsOf(result)[1]).toBe('done');
    },
  },
  'of a conversation that is handed over beside a sub-agent that waits': {
    agent: ({ tool, model }) => ({
      provider: model([{ toolCalls: [task('mailer'), { name: 'handoff_to_expert' }] }]),
      subagents: [
        {
          name: 'mailer',
          description: 'Mails.',
          provider: model([calls('mail'), 'Mailed.']),
          tools: [tool('mail', { needsApproval: true })],
        },
      ],
      handoffs: [
        {
          name: 'expert',
          description: 'Knows.',
          provider: model(['Never.', { toolCalls: [task('helper')] }, 'All done.']),
          subagents: [{ name: 'helper', description: 'Helps.', provider: model(['Helped.']) }],
        },
      ],
    }),
    check({ result, ran }) {
      expect(result).toMatchObject({
        ...{ text: 'All done.', agentName: 'expert' },
        usage: { modelCalls: 6, delegated: { runs: 2, modelCalls: 3 } },
      });
      expect(ran('mail')).toBeLessThanOrEqual(1);
    },
  },
  'of a task that the lead goes on with': {
    agent: ({ tool, model }) => ({
      provider: model([
        { toolCalls: [task('clerk')] },
        { toolCalls: [{ name: 'task', args: { agent: 'clerk', prompt: 'And now?', taskId: 'task_1' } }] },
        'All done.',
      ]),
      subagents: [
        {
          name: 'clerk',
          description: 'Files things.',
          provider: model(['Filed.', calls('look'), 'Found.']),
          tools: [tool('look')],
        },
      ],
    }),
    check({ result }) {
      expect(result).toMatchObject({
        text: 'All done.',
        usage: { modelCalls: 6, delegated: { runs: 2, modelCalls: 3 } },
      });
      expect(result.toolCalls.map(({ result: said }) => said)).toEqual([
        expect.stringContaining('Filed.'),
        expect.stringContaining('Found.'),
      ]);
    },
  },
  'of two sub-agents in one step, both of which wait': {
    atOnce: 2,
    agent: ({ tool, model }) => ({
      provider: model([{ toolCalls: [task('mailer'), task('cashier')] }, 'All done.']),
      subagents: [
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
      ],
    }),
    decide: ({ toolName }) => toolName === 'charge',
    check({ result, ran }) {
      expect(result).toMatchObject({
        text: 'All done.',
        usage: { modelCalls: 7, delegated: { runs: 2, modelCalls: 5 } },
      });
      expect(ran('mail')).toBe(0);
      expect(ran('charge')).toBeLessThanOrEqual(1);
    },
  },
};

/** On a disk each store call takes real time: there, the one that has it all. */
const storiesOnDisk = ['of a pause two levels down, beside a call of the lead that waits, too'];

describe.each(Object.entries(stores))('a crash at every store call (%s)', (name, storeIn) => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  beforeAll(async () => {
    folder = await temporaryFolder();
  });
  afterAll(() => rm(folder.path, { recursive: true, force: true }));

  it.each(name === 'memory' ? Object.keys(stories) : storiesOnDisk)(
    '%s',
    async (title) => {
      const report = await sweep(stories[title] as Story, storeIn(folder.path));
      expect(report.failures).toEqual([]);
      expect(report.points).toBeGreaterThan(30);
    },
    120_000,
  );
});
