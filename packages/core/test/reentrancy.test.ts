/** Code that runs inside a run and asks for that very run would wait for itself for ever: it is refused at once. */
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import type { Agent } from '../src/index.ts';
import { refusal, resultOfCall } from './support/read.ts';
import { emailTool, spyTool } from './support/tools.ts';
import { onEveryStore } from './support/world.ts';

const callWork = { toolCalls: [{ name: 'work', id: 'call_1' }] };

onEveryStore('inside a run', (world) => {
  it('a tool that sends to its own session is refused, and the run goes on', async () => {
    const ways: readonly ((agent: Agent) => Promise<unknown>)[] = [
      (agent) => agent.send('again', { sessionId: 'job-1' }),
      (agent) => agent.stream('again', { sessionId: 'job-1' }).result,
      (agent) => agent.resume('job-1'),
    ];
    for (const way of ways) {
      const work = spyTool('work', async () => {
        await refusal(way(agent), 'LOUSHO_SESSION_BUSY');
        return 'refused';
      });
      const agent = world.agent({ provider: mockModel([callWork, 'Done.']), tools: [work.tool] });
      const result = await agent.send('go', { sessionId: 'job-1' });
      expect(resultOfCall(result.messages, 'call_1')?.result).toBe('refused');
      expect(result.text).toBe('Done.');
      await world.checkpoints.delete('job-1');
    }
  });

  it('a tool is refused through another agent on the store, and through another process', async () => {
    const others = [
      world.agent({ provider: mockModel([]) }),
      world.otherProcess().agent({ provider: mockModel([]) }),
    ];
    const work = spyTool('work', async () => {
      for (const other of others)
        await refusal(other.send('again', { sessionId: 'job-1' }), 'LOUSHO_SESSION_BUSY');
      return 'refused';
    });
    const agent = world.agent({ provider: mockModel([callWork, 'Done.']), tools: [work.tool] });
    const result = await agent.send('go', { sessionId: 'job-1' });
    expect(resultOfCall(result.messages, 'call_1')?.result).toBe('refused');
  });

  it('a tool may send to another session, and is refused there when that one comes back', async () => {
    const back = spyTool('back', async () => {
      await refusal(agent.send('again', { sessionId: 'outer' }), 'LOUSHO_SESSION_BUSY');
      return 'refused';
    });
    const inner = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'back' }] }, 'Inner.']),
      tools: [back.tool],
    });
    const work = spyTool('work', async () => (await inner.send('help', { sessionId: 'inner' })).text);
    const agent = world.agent({ provider: mockModel([callWork, 'Done.']), tools: [work.tool] });
    const result = await agent.send('go', { sessionId: 'outer' });
    expect(resultOfCall(result.messages, 'call_1')?.result).toBe('Inner.');
    expect(back.runs).toHaveLength(1);
  });

  it('a hook, a gate and a model that send to their own session are refused, too', async () => {
    const ask = () => refusal(agent.send('again', { sessionId: 'job-1' }), 'LOUSHO_SESSION_BUSY');
    const seen: string[] = [];
    const note = (name: string) => async () => {
      await ask();
      seen.push(name);
    };
    const work = spyTool('work', undefined, {
      needsApproval: async () => {
        await note('needsApproval')();
        return false;
      },
    });
    const agent = world.agent({
      provider: mockModel([async () => (await note('model')(), callWork), 'Done.']),
      tools: [work.tool],
      hooks: {
        beforeModel: note('beforeModel'),
        afterModel: note('afterModel'),
        beforeTool: note('beforeTool'),
        afterTool: note('afterTool'),
        onFinish: note('onFinish'),
      },
    });
    expect((await agent.send('go', { sessionId: 'job-1' })).text).toBe('Done.');
    expect(new Set(seen)).toEqual(
      new Set(['beforeModel', 'model', 'afterModel', 'beforeTool', 'needsApproval', 'afterTool', 'onFinish']),
    );
  });

  it('a listener may send the next input: it waits in line like any other', async () => {
    const next: Promise<unknown>[] = [];
    const agent = world.agent({
      provider: mockModel(['One.', 'Two.']),
      onEvent(event) {
        if (event.type === 'text.done' && next.length === 0)
          next.push(agent.send('two', { sessionId: 'job-1' }));
      },
    });
    await agent.send('one', { sessionId: 'job-1' });
    expect(await next[0]).toMatchObject({ text: 'Two.' });
  });

  it('what a tool left behind may send when the run is over', async () => {
    let later: Promise<unknown> = Promise.resolve();
    let release: () => void = () => undefined;
    const work = spyTool('work', () => {
      const over = new Promise<void>((resolve) => (release = resolve));
      later = over.then(() => agent.send('afterwards', { sessionId: 'job-1' }));
      return 'left something behind';
    });
    const agent = world.agent({
      provider: mockModel([callWork, 'Done.', 'And afterwards.']),
      tools: [work.tool],
    });
    await agent.send('go', { sessionId: 'job-1' });
    release();
    expect(await later).toMatchObject({ text: 'And afterwards.' });
  });

  it('a tool cannot decide an approval of its own run', async () => {
    const email = emailTool();
    const work = spyTool('work', async (_args, ctx) => {
      const id = `job-1.apr-${ctx.runId.replaceAll('-', '').slice(0, 8)}-1-1`;
      await expect(agent.approvals.resolve({ id, approved: true })).rejects.toThrow();
      return 'refused';
    });
    const both = {
      toolCalls: [
        { name: 'work', id: 'call_1' },
        { name: 'email', args: { to: 'a' } },
      ],
    };
    const agent = world.agent({ provider: mockModel([both]), tools: [work.tool, email.tool] });
    const paused = await agent.send('go', { sessionId: 'job-1' });
    expect(paused.finishReason).toBe('awaiting-approval');
    expect(email.runs).toHaveLength(0);
  });
});
