/** Model, instructions and tools as functions of the run: resolved once a run, and on a resume with what the run began with. */
import type { RunContext } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { lines, refusal, rejection } from './support/read.ts';
import { emailTool, failingOnceTool, spyTool } from './support/tools.ts';
import { onEveryStore } from './support/world.ts';

const callWork = { toolCalls: [{ name: 'work', id: 'call_1' }] };

onEveryStore('a dynamic agent', (world) => {
  it('sees the input, the session, the metadata and the principal, once a run', async () => {
    const seen: RunContext[] = [];
    const work = spyTool('work');
    const model = mockModel([callWork, 'Done.', 'Again.']);
    const agent = world.agent({
      provider: model,
      tools: [work.tool],
      model: (ctx) => (seen.push(ctx), 'gpt-9'),
      instructions: ({ metadata }) => `Speak ${metadata.language as string}.`,
    });
    const principal = { id: 'ann' };
    await agent.send('go', { sessionId: 'chat-42', metadata: { language: 'French' }, principal });
    expect(seen).toEqual([
      {
        input: [{ role: 'user', content: 'go' }],
        sessionId: 'chat-42',
        metadata: { language: 'French' },
        principal,
      },
    ]);
    expect(model.calls.map((request) => request.model)).toEqual(['gpt-9', 'gpt-9']);
    expect(lines(model.calls[0]?.messages ?? [])[0]).toBe('system Speak French.');
    await agent.send('again', { sessionId: 'chat-42', metadata: { language: 'Dutch' } });
    expect(seen).toHaveLength(2);
    expect(seen[1]?.input).toEqual([{ role: 'user', content: 'again' }]);
    expect(lines(model.calls[2]?.messages ?? []).filter((line) => line.startsWith('system'))).toEqual([
      'system Speak Dutch.',
    ]);
  });

  it('cannot be changed through what it sees', async () => {
    const agent = world.agent({
      provider: mockModel(['Hello.']),
      instructions(ctx) {
        expect(Object.isFrozen(ctx)).toBe(true);
        expect(Object.isFrozen(ctx.metadata)).toBe(true);
        return 'Help.';
      },
    });
    await agent.send('hi', { sessionId: 'a', metadata: { language: 'French' } });
  });

  it('keeps its model on a resume, and resolves tools and instructions with the saved context', async () => {
    const work = failingOnceTool('work');
    const seen: RunContext[] = [];
    const dynamic = (provider: ReturnType<typeof mockModel>, model: string) => ({
      provider,
      model: (ctx: RunContext) => (seen.push(ctx), model),
      tools: (ctx: RunContext) => (seen.push(ctx), [work.tool]),
      instructions: (ctx: RunContext) => (seen.push(ctx), `Speak ${ctx.metadata.language as string}.`),
    });
    const first = world.agent(dynamic(mockModel([callWork]), 'gpt-9'));
    const options = { sessionId: 'job-1', metadata: { language: 'French' }, principal: { id: 'ann' } };
    await rejection(first.send('go', options));
    const [begun] = seen;
    expect(await world.stored('job-1')).toMatchObject({ runConfig: { ctx: begun, model: 'gpt-9' } });
    seen.length = 0;
    const model = mockModel(['Done.']);
    const warned: string[] = [];
    const second = world.otherProcess().agent({
      ...dynamic(model, 'other'),
      onEvent: ({ type }) => warned.push(type),
    });
    await second.resume('job-1');
    expect(seen).toEqual([begun, begun]);
    expect(model.calls[0]?.model).toBe('gpt-9');
    expect(lines(model.calls[0]?.messages ?? [])[0]).toBe('system Speak French.');
    expect(warned).not.toContain('agent.drift');
  });

  it('resolves with the saved context at a decision, too', async () => {
    const email = emailTool();
    const seen: unknown[] = [];
    const config = (script: Parameters<typeof mockModel>[0]) => ({
      provider: mockModel(script),
      tools: ({ metadata, principal }: RunContext) => (seen.push([metadata, principal]), [email.tool]),
    });
    const agent = world.agent(config([{ toolCalls: [{ name: 'email', args: { to: 'a' } }] }]));
    const principal = { id: 'ann' };
    const paused = await agent.send('go', {
      sessionId: 'job-1',
      metadata: { language: 'French' },
      principal,
    });
    const other = world.otherProcess().agent(config(['Done.']));
    await other.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    expect(seen).toEqual([
      [{ language: 'French' }, principal],
      [{ language: 'French' }, principal],
    ]);
  });

  it('takes over a run that a plain agent began, with what that run was given', async () => {
    const work = failingOnceTool('work');
    const plain = world.agent({ provider: mockModel([callWork]), tools: [work.tool] });
    await rejection(
      plain.send('go', { sessionId: 'job-1', metadata: { language: 'French' }, principal: { id: 'ann' } }),
    );
    const seen: RunContext[] = [];
    const agent = world.agent({
      provider: mockModel(['Done.']),
      tools: (ctx) => (seen.push(ctx), [work.tool]),
    });
    await agent.resume('job-1');
    expect(seen).toEqual([
      {
        input: [{ role: 'user', content: 'go' }],
        sessionId: 'job-1',
        metadata: { language: 'French' },
        principal: { id: 'ann' },
      },
    ]);
  });

  it.each(['model', 'instructions', 'tools'] as const)(
    'does not start when %s throws, and says so',
    async (option) => {
      const cause = new Error('config service down');
      const model = mockModel(['never']);
      const fail = () => {
        throw cause;
      };
      const agent = world.agent({ provider: model, [option]: fail });
      const error = await refusal(agent.send('hi', { sessionId: 'a' }), 'LOUSHO_CONFIG_RESOLVER_FAILED');
      expect(error).toMatchObject({ retryable: true, details: { option }, cause });
      expect(await refusal(agent.stream('hi').result, 'LOUSHO_CONFIG_RESOLVER_FAILED')).toMatchObject({
        cause,
      });
      expect(model.calls).toHaveLength(0);
      expect(await world.stored('a')).toBeNull();
    },
  );

  it.each([
    ['model', () => 7],
    ['instructions', () => ({ text: 'Help.' })],
    ['tools', () => 'work'],
    ['tools', async () => [{ name: 'work' }]],
  ])('does not start when %s gives something else', async (option, give) => {
    const agent = world.agent({ provider: mockModel(['never']), [option]: give });
    const error = await refusal(agent.send('hi', { sessionId: 'a' }), 'LOUSHO_CONFIG_INVALID');
    expect(error.details).toMatchObject({ option });
    expect(await world.stored('a')).toBeNull();
  });

  it('leaves a stored run as it was when a resume cannot be resolved', async () => {
    const work = failingOnceTool('work');
    let isDown = false;
    const agent = world.agent({
      provider: mockModel([callWork, 'Done.']),
      tools() {
        if (isDown) throw new Error('down');
        return [work.tool];
      },
    });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    const before = await world.stored('job-1');
    isDown = true;
    await refusal(agent.resume('job-1'), 'LOUSHO_CONFIG_RESOLVER_FAILED');
    expect(await world.stored('job-1')).toEqual(before);
    isDown = false;
    expect((await agent.resume('job-1'))?.text).toBe('Done.');
  });

  it('uses what the provider has where a function gives nothing', async () => {
    const model = mockModel(['Hello.'], { modelId: 'house-model' });
    const agent = world.agent({ provider: model, model: () => undefined as unknown as string });
    await agent.send('hi', { sessionId: 'a' });
    expect(model.calls[0]).not.toHaveProperty('model');
    expect(await world.stored('a')).toMatchObject({ fingerprint: { model: 'house-model' } });
  });
});
