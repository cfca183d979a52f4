/** A sub-agent that works behind the routes of another agent: one task there, whatever happens on the way. */
import { askPerson, defineTool, type ToolContext } from '@lousho/contract';
import { createAgent } from '@lousho/core';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { remoteAgent } from '../src/index.ts';
import { deferred } from './support/served.ts';
import {
  far,
  give,
  givenLead,
  givenRemote,
  letPass,
  paused,
  refund,
  sessionId,
  taskResult,
} from './support/remote-world.ts';
import { endlessTool, slowLookTool } from './support/tools.ts';

describe('a task for a remote agent', () => {
  it('is worked on there, and comes back with its answer and with what it cost', async () => {
    const world = givenRemote([{ toolCalls: [{ name: 'look', args: { cents: 1 } }] }, 'Refunded.']);
    const lead = givenLead(world, [give(), 'All done.'], {
      remote: { headers: { authorization: 'Bearer t-1' } },
    });
    const result = await lead.send('go', { sessionId });
    expect(result).toMatchObject({
      text: 'All done.',
      usage: { modelCalls: 4, delegated: { runs: 1, modelCalls: 2 } },
    });
    expect(result.usage.byModel['far-model']).toMatchObject({ modelCalls: 2 });
    expect(taskResult(result)).toMatch(/^Refunded\.\n\n\[sub-agent: far, /);
    expect(world.sent).toHaveLength(1);
    expect(world.sent[0]?.headers.get('authorization')).toBe('Bearer t-1');
    expect(world.sent[0]?.path).toMatch(/^sessions\/order-7-sub-[0-9a-f]{32}\/messages$/);
    expect(world.sent[0]?.body).toEqual({
      input: 'Refund order 7.',
      inputId: world.sent[0]?.path.split('/')[1],
    });
  });

  it('asks for its headers each time, and what that throws rejects the lead, which a resume goes on with', async () => {
    const world = givenRemote(['Refunded.']);
    let count = 0;
    const headers = () => {
      count += 1;
      if (count === 1) throw new Error('No token today.');
      return { authorization: `Bearer ${count}` };
    };
    const lead = givenLead(world, [give(), 'All done.'], { remote: { headers } });
    await expect(lead.send('go', { sessionId })).rejects.toThrow('No token today.');
    expect(await lead.resume(sessionId)).toMatchObject({ text: 'All done.' });
    expect(world.sent.map((sent) => sent.headers.get('authorization'))).toEqual(['Bearer 2']);
  });

  it('that is gone on with is said in the same conversation', async () => {
    const world = givenRemote(['Refunded.', 'It was nine cents.']);
    const lead = givenLead(world, [give(), give({ prompt: 'How much?', taskId: 'task_1' }), 'All done.']);
    const result = await lead.send('go', { sessionId });
    expect(result.toolCalls[1]?.result).toContain('It was nine cents.');
    expect(world.model.calls[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(result.usage).toMatchObject({ modelCalls: 5, delegated: { runs: 2, modelCalls: 2 } });
  });

  it('that is gone on with is refused when its conversation was removed there', async () => {
    const world = givenRemote(['Refunded.', 'Never.']);
    const lead = givenLead(world, [give(), give({ prompt: 'How much?', taskId: 'task_1' }), 'All done.']);
    world.fail(async (_count, { method, path }) => {
      if (method === 'GET') await world.remote.session({ id: path.split('/')[1] ?? '' }).clear();
      return undefined;
    });
    const result = await lead.send('go', { sessionId });
    expect(result.toolCalls[1]).toMatchObject({ isError: true, result: { code: 'LOUSHO_REMOTE_FAILED' } });
    expect(world.model.calls).toHaveLength(1);
  });

  it('may work in the background', async () => {
    const world = givenRemote([refund(), 'Refunded.']);
    const lead = givenLead(world, [
      give({ background: true }),
      { toolCalls: [{ name: 'agent_await', args: { taskIds: ['task_1'] } }] },
      'All done.',
    ]);
    const id = paused(await lead.send('go', { sessionId }));
    const result = await lead.approvals.resolve({ id, approved: true });
    expect(result).toMatchObject({
      text: 'All done.',
      backgroundTasks: [{ taskId: 'task_1', status: 'finished' }],
      usage: { modelCalls: 5, delegated: { modelCalls: 2 } },
    });
    expect(world.ran).toEqual([{ cents: 9 }]);
  });

  it('that uses up its steps there says so, and is counted', async () => {
    const world = givenRemote([{ toolCalls: [{ name: 'look' }] }], { maxSteps: 1 });
    const result = await givenLead(world, [give(), 'All done.']).send('go', { sessionId });
    expect(taskResult(result)).toMatchObject({ error: expect.stringContaining('used up its steps') });
    expect(result.usage).toMatchObject({ modelCalls: 3, delegated: { modelCalls: 1 } });
  });

  it('counts towards the limits of the lead when it comes back', async () => {
    const world = givenRemote([{ toolCalls: [{ name: 'look' }] }, 'Refunded.']);
    const lead = givenLead(world, [give(), 'Never.'], { limits: { maxModelCalls: 2 } });
    const result = await lead.send('go', { sessionId });
    expect(result).toMatchObject({ finishReason: 'limit', limit: { name: 'maxModelCalls', used: 3 } });
    expect(taskResult(result)).toContain('Refunded.');
  });

  it('is no part of what the lead is recognised by', async () => {
    const world = givenRemote([refund(), 'Refunded.']);
    const config = { onAgentDrift: 'error' as const };
    const { memoryStore } = await import('@lousho/store-memory');
    const store = memoryStore();
    const id = paused(
      await givenLead(world, [give(), 'All done.'], { ...config, store }).send('go', { sessionId }),
    );
    const other = givenLead(world, [give(), 'All done.'], {
      ...config,
      store,
      remote: { description: 'Other words.' },
    });
    expect(await other.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'All done.' });
  });
});

describe('a pause of a remote agent', () => {
  it('is an approval of the lead that shows the exact call; a yes runs it there once', async () => {
    const world = givenRemote([refund(), 'Refunded.'], { approvalTtlMs: 60_000 });
    const lead = givenLead(world, [give(), 'All done.']);
    const result = await lead.send('go', { sessionId });
    const id = paused(result);
    expect(await lead.approvals.list()).toEqual([
      expect.objectContaining({
        ...{ id, sessionId, kind: 'tool', toolName: 'refund', toolCallId: 'call_refund', args: { cents: 9 } },
        subagentPath: ['far'],
        expiresAt: new Date(world.clock.wallMs() + 60_000).toISOString(),
      }),
    ]);
    expect(result.usage).toMatchObject({ modelCalls: 1 });
    const ended = await lead.approvals.resolve({ id, approved: true, by: 'ann' });
    expect(ended).toMatchObject({
      text: 'All done.',
      usage: { modelCalls: 4, delegated: { runs: 1, modelCalls: 2 } },
    });
    expect(world.ran).toEqual([{ cents: 9 }]);
    expect(world.sent.filter(({ path }) => /approvals\/.+/.test(path)).map(({ body }) => body)).toEqual([
      { approved: true, by: 'ann' },
    ]);
    expect(await world.remote.approvals.list()).toEqual([]);
    await expect(lead.approvals.resolve({ id, approved: false })).rejects.toMatchObject({
      code: 'LOUSHO_APPROVAL_DECIDED',
      details: { by: 'ann' },
    });
  });

  it('takes changed arguments, a note and who decided with it', async () => {
    const world = givenRemote([{ toolCalls: [refundCall(1), refundCall(2)] }, 'Half of it.']);
    const lead = givenLead(world, [give(), 'All done.']);
    const { approvalIds = [] } = await lead.send('go', { sessionId });
    const [first = '', second = ''] = approvalIds;
    expect(approvalIds).toHaveLength(2);
    await lead.approvals.resolve({ id: first, approved: true, args: { cents: 5 }, by: 'ann' });
    // Nothing is told before the last one is decided.
    expect(world.ran).toEqual([]);
    await lead.approvals.resolve({ id: second, approved: false, note: 'Not twice.', by: 'bob' });
    expect(world.ran).toEqual([{ cents: 5 }]);
    const results = world.model.calls[1]?.messages.flatMap(({ role, content }) =>
      role === 'tool' ? content : [],
    );
    expect(results).toMatchObject([
      { approval: { by: 'ann', proposedArgs: { cents: 1 } } },
      { kind: 'rejected', result: { note: 'Not twice.' }, approval: { by: 'bob' } },
    ]);
  });

  it('is asked about again when the arguments do not fit there', async () => {
    const world = givenRemote([refund(), 'Refunded.']);
    const lead = givenLead(world, [give(), 'All done.']);
    const id = paused(await lead.send('go', { sessionId }));
    const again = paused(await lead.approvals.resolve({ id, approved: true, args: { cents: 'nine' } }));
    expect(again).not.toBe(id);
    expect(await lead.approvals.get(again)).toMatchObject({ toolName: 'refund', args: { cents: 9 } });
    expect(world.ran).toEqual([]);
    expect(await lead.approvals.resolve({ id: again, approved: true })).toMatchObject({ text: 'All done.' });
    expect(world.ran).toEqual([{ cents: 9 }]);
  });

  it('may be a question of a tool there, which gets the answer', async () => {
    const heard: ToolContext['answer'][] = [];
    const paint = defineTool({
      name: 'paint',
      description: 'Paints.',
      input: { type: 'object' },
      execute(_args, { answer }) {
        heard.push(answer);
        return answer === undefined
          ? askPerson({ text: 'Which colour?', options: ['Red', 'Blue'] })
          : 'Painted.';
      },
    });
    const world = givenRemote([{ toolCalls: [{ name: 'paint' }] }, 'Painted it.'], { tools: [paint] });
    const lead = givenLead(world, [give(), 'All done.']);
    const id = paused(await lead.send('go', { sessionId }));
    expect(await lead.approvals.get(id)).toMatchObject({
      kind: 'question',
      toolName: 'paint',
      question: { text: 'Which colour?', options: ['Red', 'Blue'] },
    });
    expect(await lead.approvals.answer({ id, answer: 'blue' })).toMatchObject({ text: 'All done.' });
    expect(heard).toMatchObject([undefined, { text: 'blue', option: 1 }]);
  });

  it('inside a sub-agent of the remote shows the whole way to it', async () => {
    const world = givenRemote(
      [{ toolCalls: [{ name: 'task', args: { agent: 'deep', prompt: 'Go.' } }] }, 'Refunded.'],
      {
        subagents: [
          {
            ...{
              name: 'deep',
              description: 'Deep.',
              provider: mockModel([{ toolCalls: [{ name: 'dig' }] }, 'Dug.']),
            },
            tools: [
              defineTool({
                name: 'dig',
                description: 'Digs.',
                input: { type: 'object' },
                needsApproval: true,
                execute: () => 1,
              }),
            ],
          },
        ],
      },
    );
    const lead = givenLead(world, [give(), 'All done.']);
    const id = paused(await lead.send('go', { sessionId }));
    expect(await lead.approvals.get(id)).toMatchObject({ toolName: 'dig', subagentPath: ['far', 'deep'] });
    const result = await lead.approvals.resolve({ id, approved: true });
    expect(result.usage).toMatchObject({ modelCalls: 6, delegated: { runs: 1, modelCalls: 4 } });
  });

  it('that somebody decided there goes on with what it came to', async () => {
    const world = givenRemote([refund(), 'Refunded.']);
    const lead = givenLead(world, [give(), 'All done.']);
    const id = paused(await lead.send('go', { sessionId }));
    const [there] = await world.remote.approvals.list();
    await world.remote.approvals.resolve({ id: there?.id ?? '', approved: true, by: 'operator' });
    const result = await lead.approvals.resolve({ id, approved: false });
    expect(taskResult(result)).toContain('Refunded.');
    expect(world.ran).toEqual([{ cents: 9 }]);
    expect(result.usage).toMatchObject({ delegated: { modelCalls: 2 } });
  });

  it('that expired is a no on both sides, also when the remote is the first to give up', async () => {
    const world = givenRemote([refund(), 'Too late.'], { approvalTtlMs: 60_000 });
    const lead = givenLead(world, [give(), 'All done.'], { approvalTtlMs: 3_600_000 });
    const id = paused(await lead.send('go', { sessionId }));
    await world.clock.advance(60_000);
    const result = await lead.approvals.resolve({ id, approved: true });
    expect(taskResult(result)).toContain('Too late.');
    expect(world.ran).toEqual([]);
  });

  it('whose conversation was removed there is a failure with a code, and nothing starts over', async () => {
    const world = givenRemote([refund(), 'Never.']);
    const lead = givenLead(world, [give(), 'All done.']);
    const id = paused(await lead.send('go', { sessionId }));
    const [there] = await world.remote.approvals.list();
    await world.remote.session({ id: there?.sessionId ?? '' }).discardPending();
    const result = await lead.approvals.resolve({ id, approved: true });
    expect(taskResult(result)).toMatchObject({ code: 'LOUSHO_REMOTE_FAILED' });
    expect([world.ran, world.model.calls.length]).toEqual([[], 1]);
  });

  it('keeps a lead without a store until its approval is decided', async () => {
    const world = givenRemote([refund(), 'Refunded.']);
    const lead = givenLead(world, [give(), 'All done.'], { store: undefined });
    const id = paused(await lead.send('go'));
    expect(await lead.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'All done.' });
    expect(world.ran).toEqual([{ cents: 9 }]);
  });
});

describe('a remote agent that is hard to reach', () => {
  it.each(['request', 'answer', 'line', 'request-silently', 'answer-silently'] as const)(
    'works once, runs what was approved once and is counted once when any one request loses its %s',
    async (loss) => {
      for (let at = 1; at <= 4; at += 1) {
        const world = givenRemote([refund(), 'Refunded.']);
        const lead = givenLead(world, [give(), 'All done.']);
        world.fail((count) => (count === at ? loss : undefined));
        const id = paused(await letPass(world.clock, lead.send('go', { sessionId })));
        const result = await letPass(world.clock, lead.approvals.resolve({ id, approved: true }));
        expect(result, `at ${at}`).toMatchObject({
          text: 'All done.',
          usage: { modelCalls: 4, delegated: { runs: 1 } },
        });
        expect([world.ran, world.model.calls.length], `at ${at}`).toEqual([[{ cents: 9 }], 2]);
      }
    },
  );

  it('at work for longer than a request may take is joined, and works once', async () => {
    const { tool, begun, goOn } = slowLookTool();
    const world = givenRemote([{ toolCalls: [{ name: 'slow' }] }, 'Looked.'], {
      tools: [{ ...tool, name: 'slow' }],
    });
    const sending = givenLead(world, [give(), 'All done.']).send('go', { sessionId });
    await begun;
    for (let minute = 1; minute <= 5; minute += 1) await world.clock.advance(61_000);
    expect(world.sent.length).toBeGreaterThan(3);
    goOn();
    expect(await letPass(world.clock, sending)).toMatchObject({
      text: 'All done.',
      usage: { modelCalls: 4, delegated: { runs: 1 } },
    });
    expect(world.model.calls).toHaveLength(2);
  });

  it('is asked again after as long as it wants', async () => {
    const world = givenRemote(['Refunded.']);
    const retries: number[] = [];
    const lead = givenLead(world, [give(), 'All done.'], {
      onEvent: (event) => event.type === 'provider.retry' && retries.push(event.delayMs),
    });
    const away = (retryAfter: string) =>
      new Response('', {
        status: 503,
        headers: { 'retry-after': retryAfter, date: 'Thu, 01 Jan 2026 00:00:00 GMT' },
      });
    world.fail((count) =>
      count === 1 ? away('7') : count === 2 ? away('Thu, 01 Jan 2026 00:01:30 GMT') : undefined,
    );
    expect(await letPass(world.clock, lead.send('go', { sessionId }))).toMatchObject({ text: 'All done.' });
    expect(retries).toEqual([7_000, 90_000]);
  });

  it('is waited for as long as it is busy', async () => {
    const world = givenRemote(['Refunded.']);
    const lead = givenLead(world, [give(), 'All done.']);
    const busy = () =>
      Response.json({ error: { code: 'LOUSHO_SESSION_BUSY', message: 'Busy.' } }, { status: 409 });
    world.fail((count) => (count <= 40 ? busy() : undefined));
    expect(await letPass(world.clock, lead.send('go', { sessionId }), 60_000)).toMatchObject({
      text: 'All done.',
    });
    expect(world.model.calls).toHaveLength(1);
  });

  it('fails the task, not the lead, when it stays away', async () => {
    const world = givenRemote(['Never.']);
    const lead = givenLead(world, [give(), 'I could not.']);
    world.fail(() => 'request');
    const beganMs = world.clock.monotonicMs();
    const result = await letPass(world.clock, lead.send('go', { sessionId }), 60_000);
    expect(result).toMatchObject({ text: 'I could not.', usage: { modelCalls: 2 } });
    expect(taskResult(result)).toMatchObject({
      code: 'LOUSHO_REMOTE_FAILED',
      error: expect.stringContaining('The remote agent "far" could not be reached.'),
    });
    expect(world.clock.monotonicMs() - beganMs).toBeGreaterThan(300_000);
  });

  it.each([
    ['refuses', 403, { error: { code: 'FORBIDDEN', message: 'Not yours.' } }, 'FORBIDDEN', 1],
    ['has moved', 302, {}, 'status 302', 1],
    [
      'fails',
      500,
      { error: { code: 'LOUSHO_PROVIDER_ERROR', message: 'It failed.' } },
      'LOUSHO_PROVIDER_ERROR',
      4,
    ],
    ['says nothing', 200, undefined, 'what is no JSON', 4],
    ['talks about something else', 200, { hello: 'world' }, 'gave an answer that is none', 1],
  ])('that %s fails the task with what it said', async (_what, status, body, says, requests) => {
    const world = givenRemote(['Never.']);
    const lead = givenLead(world, [give(), 'I could not.']);
    world.fail(() => (body === undefined ? new Response('', { status }) : Response.json(body, { status })));
    const result = await letPass(world.clock, lead.send('go', { sessionId }));
    expect(taskResult(result)).toMatchObject({
      code: 'LOUSHO_REMOTE_FAILED',
      error: expect.stringContaining(says),
    });
    expect(world.sent).toHaveLength(requests);
  });

  it('that never stops talking fails the task', async () => {
    const world = givenRemote(['Never.']);
    const megabyte = new Uint8Array(1024 * 1024).fill(32);
    const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(megabyte) });
    world.fail(() => new Response(endless()));
    const result = await letPass(
      world.clock,
      givenLead(world, [give(), 'I could not.']).send('go', { sessionId }),
    );
    expect(taskResult(result)).toMatchObject({ code: 'LOUSHO_REMOTE_FAILED' });
    expect(world.sent).toHaveLength(1);
  });

  it('that says nonsense about its costs costs nothing for that', async () => {
    const world = givenRemote(['Never.']);
    const usage = {
      modelCalls: -4,
      totalTokens: 'many',
      inputTokens: 3,
      byModel: { m: { modelCalls: Infinity } },
    };
    world.fail(() => Response.json({ finishReason: 'stop', text: 'Hi.', usage }));
    const result = await givenLead(world, [give(), 'All done.']).send('go', { sessionId });
    expect(result.usage).toMatchObject({ modelCalls: 2, inputTokens: 5, totalTokens: 4 });
  });
});

describe('a lead that is stopped', () => {
  it('stops the remote, and counts what that had spent', async () => {
    const { tool: slow, begun } = endlessTool('slow');
    const world = givenRemote([{ toolCalls: [{ name: 'slow' }] }, 'Never.'], { tools: [slow] });
    const lead = givenLead(world, [give(), 'Never.']);
    const stop = new AbortController();
    const sending = lead.send('go', { sessionId, signal: stop.signal });
    await begun;
    stop.abort();
    const result = await letPass(world.clock, sending, 10);
    expect(result).toMatchObject({
      finishReason: 'aborted',
      usage: { modelCalls: 2, delegated: { modelCalls: 1 } },
    });
    await world.rest();
    expect(world.sent.at(-1)?.path).toMatch(/\/stop$/);
    expect(world.model.calls).toHaveLength(1);
    expect(await world.remote.pending()).toEqual([]);
  });

  it('by a shutdown leaves the remote at work, and another process gets its answer', async () => {
    const begun = deferred();
    const end = deferred();
    const slow = defineTool({
      name: 'slow',
      description: 'Slow.',
      input: { type: 'object' },
      async execute() {
        begun.resolve();
        await end.promise;
        return 'slow done';
      },
    });
    const world = givenRemote([{ toolCalls: [{ name: 'slow' }] }, 'Refunded.'], { tools: [slow] });
    const { memoryStore } = await import('@lousho/store-memory');
    const store = memoryStore();
    const lead = givenLead(world, [give(), 'All done.'], { store });
    const sending = lead.send('go', { sessionId });
    const rejected = expect(sending).rejects.toMatchObject({ code: 'LOUSHO_SHUTDOWN' });
    await begun.promise;
    await lead.shutdown();
    await rejected;
    const other = givenLead(world, [give(), 'All done.'], { store });
    const resumed = other.resume(sessionId);
    end.resolve();
    expect(await resumed).toMatchObject({ text: 'All done.', usage: { modelCalls: 4 } });
    expect(world.model.calls).toHaveLength(2);
  });

  it('hears of a remote that somebody stopped there', async () => {
    const { tool: slow, begun } = endlessTool('slow');
    const world = givenRemote([{ toolCalls: [{ name: 'slow' }] }, 'Never.'], { tools: [slow] });
    const lead = givenLead(world, [give(), 'All done.']);
    const sending = lead.send('go', { sessionId });
    await begun;
    const path = world.sent[0]?.path.replace('/messages', '/stop') ?? '';
    await world.fetch(`http://far.example/agent/${path}`, { method: 'POST' });
    const result = await sending;
    expect(result.toolCalls[0]).toMatchObject({ kind: 'cancelled' });
    expect(result).toMatchObject({ text: 'All done.', usage: { modelCalls: 3 } });
  });
});

describe('remoteAgent', () => {
  it.each([
    ['url', { url: 'ftp://far.example' }],
    ['url', { url: 'far' }],
    ['headers', { headers: 'secret' }],
    ['fetch', { fetch: 'curl' }],
    ['hedaers', { hedaers: {} }],
  ])('refuses a wrong %s', (option, wrong) => {
    const options = { name: 'far', description: 'Far.', url: 'http://far.example', ...wrong };
    expect(() => remoteAgent(options as never)).toThrow(option);
  });

  it.each([
    ['tools', { tools: [] }],
    ['instructions', { instructions: 'Be kind.' }],
    ['remote', { remote: {} }],
  ])('cannot be given %s by the lead', (option, more) => {
    const subagent = { ...far(givenRemote([])), ...more };
    const make = () => createAgent({ provider: mockModel([]), subagents: [subagent as never] });
    expect(make).toThrow(`subagents.far.${option}`);
  });

  it('takes no conversation over', () => {
    const make = () => createAgent({ provider: mockModel([]), handoffs: [far(givenRemote([]))] });
    expect(make).toThrow('handoffs.far.remote');
  });
});

function refundCall(cents: number) {
  return { name: 'refund', args: { cents } };
}
