/** Turns of a session that were cut: by a store that fails, by a model that does, by a person; and what is left of them. */
import { LLMProviderError } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { lines, refusal, rejection } from './support/read.ts';
import { checkpointsWith, storeOf } from './support/stores.ts';
import { gatedTool, spyTool } from './support/tools.ts';
import { letPass, until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

/** The second turn of `chat` waits for a yes. */
async function givenPausedTurn(world: World) {
  const gated = gatedTool('gated');
  const model = mockModel(['Hi.', { toolCalls: [{ name: 'gated', id: 'call_g' }] }]);
  const config = { provider: model, tools: [gated.tool] };
  const agent = world.agent(config);
  const session = agent.session({ id: 'chat' });
  await session.send('hi');
  const { approvalId: id = '' } = await session.send('go');
  return { agent, session, config, model, gated, id };
}

onEveryStore('a turn that was cut', (world) => {
  it('whose result could not be saved asks the model nothing again, and runs the call again', async () => {
    const a = spyTool('a');
    const model = mockModel([{ toolCalls: [{ name: 'a', id: 'call_a' }] }, 'Done.']);
    const { checkpoints, sessions } = world.store;
    const failing = checkpointsWith(checkpoints, {
      async saveIfLeased(id, checkpoint, owner, fence) {
        if (a.runs.length > 0) throw new Error('disk full');
        return checkpoints.saveIfLeased(id, checkpoint, owner, fence);
      },
    });
    const first = world.agent({ store: storeOf(failing, { sessions }), provider: model, tools: [a.tool] });
    await letPass(world.clock, rejection(first.session({ id: 'chat' }).send('go')));
    expect([model.calls.length, a.runs.length]).toEqual([1, 1]);

    const store = storeOf(checkpoints, { sessions });
    const later = world.otherProcess().agent({ store, provider: model, tools: [a.tool] });
    expect(await later.session({ id: 'chat' }).resume()).toMatchObject({ text: 'Done.' });
    expect([model.calls.length, a.runs.length]).toEqual([2, 2]);
    expect(lines(await later.session({ id: 'chat' }).messages())).toEqual([
      'user go',
      'assistant a#call_a',
      'tool call_a "a done"',
      'assistant Done.',
    ]);
  });

  it('by a service that was down is finished first by the next input', async () => {
    const down = new LLMProviderError('down', { kind: 'api', status: 503, retryable: true });
    const a = spyTool('a');
    const model = mockModel([{ toolCalls: [{ name: 'a' }] }, down, 'First.', 'Second.']);
    const session = world
      .agent({ provider: model, tools: [a.tool], retry: { maxRetries: 0 } })
      .session({ id: 'chat' });
    await refusal(session.send('one'), 'LOUSHO_PROVIDER_ERROR');
    expect(await session.pending()).toMatchObject({ attempts: 1, lastError: { retryable: true } });
    expect(await session.send('two')).toMatchObject({ text: 'Second.' });
    expect(lines(await session.messages()).filter((line) => !line.startsWith('tool'))).toEqual([
      'user one',
      'assistant a#call_1',
      'assistant First.',
      'user two',
      'assistant Second.',
    ]);
    expect(a.runs).toHaveLength(1);
  });

  it('by a person while the model thought keeps what was said, for the next turn and in what it cost', async () => {
    const stop = new AbortController();
    const model = mockModel([{ text: 'too late', delayMs: 60_000 }, 'Next.']);
    const session = world.agent({ provider: model }).session({ id: 'chat' });
    const sent = session.send('Remember 7.', { signal: stop.signal });
    await until(() => model.calls.length === 1);
    stop.abort();
    expect(await sent).toMatchObject({
      finishReason: 'aborted',
      usage: { modelCalls: 1, estimated: true },
    });
    await session.send('Which number?');
    expect(lines(model.calls[1]?.messages ?? [])).toEqual(['user Remember 7.', 'user Which number?']);
    expect(await world.store.sessions.load('chat')).toMatchObject({
      usage: { modelCalls: 2, estimated: true },
    });
  });

  it('by a person while an answer was streamed keeps the words that were heard, and counts them', async () => {
    const model = mockModel(['Contract A-7 covers everything.', 'Next.']);
    const stop = new AbortController();
    let heard = '';
    const agent = world.agent({
      provider: model,
      onEvent(event) {
        if (event.type === 'text.delta') heard += event.text;
        if (heard === 'Contract A-7 covers ') stop.abort();
      },
    });
    const session = agent.session({ id: 'chat' });
    const { usage } = await session.stream('what does it cover?', { signal: stop.signal }).result;
    expect(usage).toMatchObject({ modelCalls: 1, estimated: true });
    expect(usage.outputTokens).toBeGreaterThan(0);
    expect(await session.messages()).toMatchObject([
      { role: 'user' },
      {
        content: [{ type: 'text', text: 'Contract A-7 covers ' }],
        providerMetadata: { lousho: { interrupted: true } },
      },
    ]);
    await session.send('go on');
    expect(lines(model.calls[1]?.messages ?? [])[1]).toBe('assistant Contract A-7 covers ');
  });

  it('is dropped by another process with discardPending(), and its approval is nobody any more', async () => {
    const { config, gated, id } = await givenPausedTurn(world);
    const agent = world.otherProcess().agent({ ...config, provider: mockModel(['Fresh.']) });
    const session = agent.session({ id: 'chat' });
    expect(await session.discardPending()).toBe(true);
    expect(await world.checkpoints.list()).toEqual([]);
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(await session.send('fresh')).toMatchObject({ text: 'Fresh.' });
    expect(gated.runs).toEqual([]);
  });

  it('stays with its session when that is forked: the fork takes input, and the approval goes on with the source', async () => {
    const { agent, session, model, gated, id } = await givenPausedTurn(world);
    model.push('Of the fork.', 'Done.');
    const fork = await session.fork({ fromStep: 0 });
    expect(await fork.pending()).toBeNull();
    expect(await fork.send('new')).toMatchObject({ text: 'Of the fork.' });
    expect(await agent.approvals.resolve({ id, approved: true })).toMatchObject({
      text: 'Done.',
      sessionId: 'chat',
    });
    expect(gated.runs).toHaveLength(1);
    expect(lines(await fork.messages())).toEqual(['user new', 'assistant Of the fork.']);
    expect(lines(await session.messages()).at(-1)).toBe('assistant Done.');
  });
});

onEveryStore('the default id of a fork', (world) => {
  it('passes over one under which a turn lies that the fork would take for its own', async () => {
    const model = mockModel(['One.', 'Two.', 'Fork.']);
    const session = world.agent({ provider: model }).session({ id: 'src' });
    await session.send('one');
    await session.send('two');
    const stray = world.agent({ provider: mockModel(['Stray.']) });
    await stray.send('stray', { sessionId: 'stray' });
    const left = await world.stored('stray');
    if (left === null) throw new Error('It is not there.');
    await world.checkpoints.save('src-fork-1.turn-2', left);
    const fork = await session.fork({ fromStep: 2 });
    expect(fork.id).toBe('src-fork-2');
    expect(await fork.send('go')).toMatchObject({ text: 'Fork.' });
    expect(await world.stored('src-fork-1.turn-2')).toEqual(left);
  });
});
