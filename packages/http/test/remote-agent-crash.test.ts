/**
 * G31: A task is given to a remote sub-agent once. Whatever interrupts the two or the line between them, its work goes on, a decision
 * takes place there once, and what it spent is counted once.
 */
import path from 'node:path';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { AgentStore, ExecutionResult, JsonValue, Ports } from '@lousho/contract';
import { isSDKError } from '@lousho/contract';
import type { Agent } from '@lousho/core';
import { fileStore } from '@lousho/store-file';
import { memoryStore } from '@lousho/store-memory';
import { SqliteStore } from '@lousho/store-sqlite';
import type { MockResponse } from '@lousho/testing';
import { crashSweep, type CrashReport } from '@lousho/testing/crash';
import { afterAll, describe, expect, it } from 'vitest';
import {
  give,
  givenLead,
  givenRemote,
  refund,
  sessionId,
  type Loss,
  type RemoteWorld,
} from './support/remote-world.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'lousho-remote-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const inMemory = (ports: Ports): AgentStore => memoryStore({ ports });
const onDisk: { readonly [name: string]: (ports: Ports) => AgentStore } = {
  sqlite: (ports) =>
    new SqliteStore(path.join(folder, `${ports.ids.random()}.db`), { ports, durability: 'process' }),
  file: (ports) => fileStore(path.join(folder, ports.ids.random()), { ports, durability: 'process' }),
};

interface Story {
  readonly lead: readonly MockResponse[];
  readonly remote: readonly MockResponse[];
  /** Every call that runs at the remote, in order. */
  readonly ran: readonly JsonValue[];
  readonly runs: number;
}

const stories: { readonly [name: string]: Story } = {
  'of a task': {
    lead: [give(), 'All done.'],
    remote: [{ toolCalls: [{ name: 'look', args: { cents: 1 } }] }, 'Looked.'],
    ran: [{ cents: 1 }],
    runs: 1,
  },
  'of a task that waits for a person': {
    lead: [give(), 'All done.'],
    remote: [refund(1), 'Refunded.'],
    ran: [{ cents: 1 }],
    runs: 1,
  },
  'of a task that waits for a person two times': {
    lead: [give(), 'All done.'],
    remote: [refund(1), refund(2), 'Refunded.'],
    ran: [{ cents: 1 }, { cents: 2 }],
    runs: 1,
  },
  'of a task that is gone on with': {
    lead: [give(), give({ prompt: 'Once more.', taskId: 'task_1' }), 'All done.'],
    remote: [refund(1), 'Refunded.', refund(2), 'Refunded again.'],
    ran: [{ cents: 1 }, { cents: 2 }],
    runs: 2,
  },
  'of a task in the background': {
    lead: [
      give({ background: true }),
      { toolCalls: [{ name: 'agent_await', args: { taskIds: ['task_1'] } }] },
      'All done.',
    ],
    remote: [refund(1), 'Refunded.'],
    ran: [{ cents: 1 }],
    runs: 1,
  },
};

/** Each second request is lost, each time in another way. */
const losses: readonly Loss[] = ['answer', 'line', 'request'];

async function sweep(
  story: Story,
  createStore: (ports: Ports) => AgentStore,
  isLossy: boolean,
): Promise<CrashReport> {
  let world: RemoteWorld | undefined;
  let result: ExecutionResult | undefined;
  return crashSweep({
    createStore,
    async run({ store, ports, restart }) {
      if (restart === 0 || world === undefined) {
        world = givenRemote(story.remote);
        if (isLossy)
          world.fail((count) => (count % 2 === 0 ? losses[(count / 2) % losses.length] : undefined));
      }
      result = await toEnd(givenLead(world, story.lead, { store, ports }));
    },
    check({ checkpoints }) {
      if (world === undefined || result === undefined) throw new Error('It has no result.');
      expect(world.ran).toEqual(story.ran);
      expect(world.model.remaining).toBe(0);
      const modelCalls = world.model.calls.length;
      expect(modelCalls).toBe(story.remote.length);
      expect(result).toMatchObject({
        text: 'All done.',
        usage: { delegated: { runs: story.runs, modelCalls } },
      });
      expect(result.usage.modelCalls).toBe(story.lead.length + modelCalls);
      expect(checkpoints.map((entry) => entry.sessionId)).toEqual([sessionId]);
    },
  });
}

async function toEnd(lead: Agent): Promise<ExecutionResult> {
  for (;;) {
    const waiting = await goOn(lead);
    if (!Array.isArray(waiting)) return waiting as ExecutionResult;
    for (const id of waiting as readonly string[])
      if ((await lead.approvals.get(id)) !== undefined)
        await lead.approvals.resolve({ id, approved: true, by: 'ann' });
  }
}

async function goOn(lead: Agent): Promise<readonly string[] | ExecutionResult> {
  try {
    const result = await lead.send('go', { sessionId, inputId: 'input-1' });
    return result.approvalIds ?? result;
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_SESSION_AWAITING_APPROVAL')) return error.details.approvalIds;
    throw error;
  }
}

describe.each(Object.entries(stories))('a crash of the lead %s', (_title, story) => {
  it('never starts the remote work over', async () => {
    const { failures, points } = await sweep(story, inMemory, false);
    expect(failures).toEqual([]);
    expect(points).toBeGreaterThan(20);
  });

  it('does not either beside a network that loses every second request', async () => {
    expect((await sweep(story, inMemory, true)).failures).toEqual([]);
  });
});

it.each(Object.entries(onDisk))('is the same on a disk (%s)', async (_name, createStore) => {
  expect(
    (await sweep(stories['of a task that waits for a person'] as Story, createStore, false)).failures,
  ).toEqual([]);
});
