/** A crash before and after each store call of runs with tasks in the background: none starts over, and what is cancelled stays so. */
import type { ExecutionResult } from '@lousho/contract';
import type { MockResponse } from '@lousho/testing';
import { expect, it } from 'vitest';
import { calls, mailerAndCashier, sweep, type Story } from './support/delegation-sweep.ts';
import { sweepWholeStores } from './support/sweep.ts';

const task = (agent: string) => ({
  name: 'task',
  args: { agent, prompt: `Work, ${agent}.`, background: true },
});
const tasks = (...agents: readonly string[]): MockResponse => ({ toolCalls: agents.map(task) });
const awaiting = (...taskIds: readonly string[]): MockResponse => ({
  toolCalls: [{ name: 'agent_await', args: { taskIds } }],
});
const cancelling = (taskId: string): MockResponse => ({
  toolCalls: [{ name: 'agent_cancel', args: { taskId } }],
});

const ends = ({ backgroundTasks = [] }: ExecutionResult) => backgroundTasks.map(({ status }) => status);

const stories: { readonly [name: string]: Story } = {
  'two that are awaited, one of them queued behind the other': {
    atOnce: 2,
    agent: ({ tool, model }) => ({
      provider: model([tasks('clerk', 'scout'), calls('note'), awaiting('task_1', 'task_2'), 'All done.']),
      tools: [tool('note')],
      maxConcurrentTasks: 1,
      subagents: [
        {
          name: 'clerk',
          description: 'Files things.',
          provider: model([calls('look'), calls('file'), 'Filed.']),
          tools: [tool('look'), tool('file')],
        },
        {
          name: 'scout',
          description: 'Finds things.',
          provider: model([calls('find'), 'Found.']),
          tools: [tool('find')],
        },
      ],
    }),
    check({ result, ran, isCrashed }) {
      expect(result).toMatchObject({
        text: 'All done.',
        usage: { modelCalls: 9, delegated: { runs: 2, modelCalls: 5 } },
      });
      expect(ran('look') + ran('file') + ran('find') + ran('note')).toBeLessThanOrEqual(isCrashed ? 6 : 4);
      const said = JSON.stringify(result.toolCalls[3]?.result);
      expect(said).toContain('Filed.');
      expect(said).toContain('Found.');
      expect(ends(result)).toEqual(['finished', 'finished']);
    },
  },
  'one that is awaited and one that is cancelled': {
    atOnce: 3,
    agent: ({ tool, model }) => ({
      provider: model([tasks('clerk', 'scout'), cancelling('task_2'), awaiting('task_1'), 'All done.']),
      subagents: [
        {
          name: 'clerk',
          description: 'Files.',
          provider: model([calls('look'), 'Filed.']),
          tools: [tool('look')],
        },
        {
          name: 'scout',
          description: 'Finds.',
          provider: model([calls('ask'), 'Found.']),
          // It waits for a person, who is never asked.
          tools: [tool('ask', { needsApproval: true })],
        },
      ],
    }),
    check({ result, ran }) {
      expect(result).toMatchObject({ text: 'All done.' });
      expect(ran('ask')).toBe(0);
      expect(ends(result)).toEqual(['finished', 'cancelled']);
      // It may have been cancelled before its first model call.
      expect(result.usage.modelCalls).toBeGreaterThanOrEqual(6);
      expect(result.usage.modelCalls).toBeLessThanOrEqual(7);
    },
  },
  'two that wait for a person, one after the other': {
    atOnce: 3,
    agent: (making) => ({
      provider: making.model([tasks('mailer', 'cashier'), awaiting('task_2', 'task_1'), 'All done.']),
      subagents: mailerAndCashier(making),
    }),
    decide: ({ toolName }) => toolName === 'charge',
    check({ result, ran }) {
      expect(result).toMatchObject({
        text: 'All done.',
        usage: { modelCalls: 8, delegated: { runs: 2, modelCalls: 5 } },
      });
      expect(ran('mail')).toBe(0);
      expect(ran('charge')).toBeLessThanOrEqual(1);
      expect(ends(result)).toEqual(['finished', 'finished']);
      expect(result.toolCalls).toHaveLength(3);
    },
  },
  'one that works while the lead itself waits for a person, and goes on with it': {
    atOnce: 2,
    agent: ({ tool, model }) => ({
      provider: model([tasks('clerk'), calls('pay'), awaiting('task_1'), 'All done.']),
      tools: [tool('pay', { needsApproval: true })],
      subagents: [
        {
          name: 'clerk',
          description: 'Files.',
          provider: model([calls('look'), calls('file'), 'Filed.']),
          tools: [tool('look'), tool('file')],
        },
      ],
    }),
    check({ result, ran }) {
      expect(result).toMatchObject({
        text: 'All done.',
        usage: { modelCalls: 7, delegated: { runs: 1, modelCalls: 3 } },
      });
      expect(ran('pay')).toBeLessThanOrEqual(1);
      expect(ends(result)).toEqual(['finished']);
    },
  },
  'those that the end of the lead waits for': {
    atOnce: 3,
    agent: ({ tool, model }) => ({
      provider: model([tasks('clerk', 'scout'), 'Started.']),
      awaitBackgroundOnFinish: true,
      subagents: [
        {
          name: 'clerk',
          description: 'Files.',
          provider: model([calls('look'), 'Filed.']),
          tools: [tool('look')],
        },
        { name: 'scout', description: 'Finds.', provider: model(['Found.']) },
      ],
    }),
    check({ result }) {
      expect(result).toMatchObject({
        text: 'Started.',
        usage: { modelCalls: 5, delegated: { runs: 2, modelCalls: 3 } },
      });
      expect(ends(result)).toEqual(['finished', 'finished']);
    },
  },
  'one below a sub-agent that is in the background itself': {
    atOnce: 3,
    agent: ({ tool, model }) => ({
      provider: model([tasks('manager'), awaiting('task_1'), 'All done.']),
      subagents: [
        {
          name: 'manager',
          description: 'Manages.',
          provider: model([tasks('mailer'), awaiting('task_1'), 'Managed.']),
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
        usage: { modelCalls: 8, delegated: { runs: 1, modelCalls: 5 } },
      });
      expect(ran('mail')).toBeLessThanOrEqual(1);
      expect(ends(result)).toEqual(['finished']);
    },
  },
};

/** On a disk each store call takes real time: there, the one that has it all. */
const storiesOnDisk = ['one that works while the lead itself waits for a person, and goes on with it'];

sweepWholeStores('a crash at every store call, with tasks in the background', (createStore, name) => {
  it.each(name === 'memory' ? Object.keys(stories) : storiesOnDisk)(
    '%s',
    async (title) => {
      const report = await sweep(stories[title] as Story, createStore());
      expect(report.failures).toEqual([]);
      expect(report.points).toBeGreaterThan(30);
    },
    120_000,
  );
});
