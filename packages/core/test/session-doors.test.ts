/** Whatever a session is given, and through whichever object it is reached: nothing of it is lost in silence. */
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { lines, refusal, rejection } from './support/read.ts';
import { deferred, failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { onEveryStore } from './support/world.ts';

const gatedCall = { toolCalls: [{ name: 'gated', id: 'call_g' }] };

onEveryStore('the doors of a session', (world) => {
  it('decides a turn of a session with a store of its own through the agent', async () => {
    const own = memoryStore();
    for (const store of [{ checkpoints: own.checkpoints }, own]) {
      const gated = gatedTool('gated');
      const agent = world.agent({ provider: mockModel([gatedCall, 'Done.']), tools: [gated.tool] });
      const session = agent.session({ id: 'chat', store });
      const { approvalId: id = '' } = await session.send('go');
      expect(await agent.approvals.get(id)).toMatchObject({ toolName: 'gated' });
      expect(await agent.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'Done.' });
      expect(await session.pending()).toBeNull();
      expect(lines(await session.messages()).at(-1)).toBe('assistant Done.');
      await session.clear();
    }
  });

  it('resumes a turn of a session with a store of its own through the agent', async () => {
    const own = memoryStore();
    const a = failingOnceTool('a');
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'a' }] }, 'Done.']),
      tools: [a.tool],
    });
    await rejection(agent.session({ id: 'chat', store: own }).send('go'));
    expect(await agent.resume('chat')).toMatchObject({ text: 'Done.' });
    expect(await own.checkpoints.list()).toEqual([]);
  });

  it.each(['wait', 'queue'] as const)(
    'lets code decide a pause before the next input has its turn (%s)',
    async (turnPolicy) => {
      const gated = gatedTool('gated');
      const asked: string[] = [];
      const heard: string[] = [];
      const agent = world.agent({
        provider: mockModel([gatedCall, 'One.', 'Two.']),
        tools: [gated.tool],
        approve: ({ id }) => {
          asked.push(id);
          return { approved: true };
        },
      });
      const session = agent.session({ id: 'chat', turnPolicy });
      session.on(({ type }) => heard.push(type));
      const [one] = await Promise.all([session.send('one'), session.send('two')]);
      expect(one.finishReason).toBe('stop');
      expect(asked).toHaveLength(1);
      expect(gated.runs).toHaveLength(1);
      expect(heard.filter((type) => type === 'tool.resume')).toHaveLength(1);
      expect(lines(await session.messages())).toContain('user two');
    },
  );

  it('holds what runs after a decision in code against the limits of the session', async () => {
    const model = mockModel([gatedCall, 'Too much.']);
    const agent = world.agent({
      provider: model,
      tools: [gatedTool('gated').tool],
      approve: () => ({ approved: true }),
    });
    const session = agent.session({ id: 'chat', limits: { maxModelCalls: 1 } });
    expect(await session.send('go')).toMatchObject({ finishReason: 'limit' });
    expect(model.calls).toHaveLength(1);
  });

  it('keeps the system messages of the first input', async () => {
    const model = mockModel(['One.', 'Two.']);
    const session = world.agent({ provider: model, instructions: 'Help.' }).session({ id: 'chat' });
    await session.send([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'hi' },
    ]);
    await session.send('more');
    for (const { messages } of model.calls)
      expect(lines(messages).slice(0, 3)).toEqual(['system Help.', 'system Be brief.', 'user hi']);
    await refusal(session.send([{ role: 'system', content: 'Only this.' }]), 'LOUSHO_INPUT_EMPTY');
  });

  it('answers words that are said again after a person stopped the answer to them', async () => {
    const stop = new AbortController();
    const model = mockModel(['One.', 'Two.']);
    const config = { provider: model, hooks: { beforeModel: () => stop.abort() } };
    const aborted = await world.agent(config).session({ id: 'chat' }).send('hi', { signal: stop.signal });
    expect(aborted.finishReason).toBe('aborted');
    const session = world.agent({ provider: model }).session({ id: 'chat' });
    expect(await session.send('hi')).toMatchObject({ finishReason: 'stop' });
    expect((await session.messages()).at(-1)).toMatchObject({ role: 'assistant' });
  });

  it('lets an input join a turn that is streamed', async () => {
    const begun = deferred();
    const ended = deferred();
    const slow = spyTool('slow', async () => {
      begun.resolve();
      await ended.promise;
    });
    const model = mockModel([{ toolCalls: [{ name: 'slow' }] }, 'Both.']);
    const session = world
      .agent({ provider: model, tools: [slow.tool] })
      .session({ id: 'chat', turnPolicy: 'queue' });
    const run = session.stream('go');
    await begun.promise;
    const joined = session.send('also');
    ended.resolve();
    expect(await joined).toBe(await run.result);
    expect(model.calls).toHaveLength(2);
  });

  it('stops the turn that comes first when its handle is aborted', async () => {
    const begun = deferred();
    const slow = spyTool('slow', async (_args, { signal }) => {
      begun.resolve();
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    });
    const cut = failingOnceTool('cut');
    const tools = [slow.tool, cut.tool];
    const model = mockModel([
      { toolCalls: [{ name: 'cut' }] },
      { toolCalls: [{ name: 'slow' }] },
      'Too late.',
    ]);
    const session = world.agent({ provider: model, tools }).session({ id: 'chat' });
    await rejection(session.send('first'));
    const run = session.stream('second');
    await begun.promise;
    run.abort();
    expect(await run.result).toMatchObject({ finishReason: 'aborted' });
    expect(lines(await session.messages())).not.toContain('user second');
  });

  it('ends a listener at once, and each by itself when one was given twice', async () => {
    const heard: string[] = [];
    const listen = ({ type }: { readonly type: string }): void => void heard.push(type);
    let end: () => void = () => undefined;
    const probe = spyTool('probe', () => end());
    const model = mockModel([{ toolCalls: [{ name: 'probe' }] }, 'One.', 'Two.']);
    const session = world.agent({ provider: model, tools: [probe.tool] }).session({ id: 'chat' });
    end = session.on(listen);
    await session.send('one');
    expect(heard).not.toContain('run.done');
    session.on(listen)();
    session.on(listen);
    await session.send('two');
    expect(heard.filter((type) => type === 'run.done')).toHaveLength(1);
  });

  it('stores no fork under an id that no session can have, and refuses what it does not know', async () => {
    const id = 'x'.repeat(128);
    const session = world.agent({ provider: mockModel(['One.']) }).session({ id });
    await session.send('one');
    await refusal(session.fork({ fromStep: 1 }), 'LOUSHO_SESSION_ID_INVALID');
    expect((await world.store.sessions.load(`${id}-fork-1`)) ?? null).toBeNull();
    const untyped = session as unknown as {
      readonly [Name in 'fork' | 'resume']: (...args: unknown[]) => unknown;
    };
    for (const call of [
      async () => untyped.fork(),
      async () => untyped.fork({ fromStep: 1, newSessionID: 'b' }),
      async () => untyped.resume(null),
      async () => untyped.resume({ singal: new AbortController().signal }),
    ])
      await refusal(call(), 'LOUSHO_CONFIG_INVALID');
  });
});
