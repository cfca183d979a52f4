/** The `task` tool: a sub-agent works in a conversation of its own, on what its lead has, and its answer is the call's result. */
import {
  LLMProviderError,
  PropagatingToolError,
  SDKError,
  classifyCheckpointId,
  type AgentEvent,
  type Checkpoint,
  type HookContext,
  type ToolContext,
} from '@lousho/contract';
import { manualClock, mockModel } from '@lousho/testing';
import { crashingStore } from '@lousho/testing/crash';
import { describe, expect, it } from 'vitest';
import { createAgent } from '../src/index.ts';
import { calling, delegate, scripted, task } from './support/delegating.ts';
import { eventsOf, expectValid, lines, rejection, resultOfCall } from './support/read.ts';
import { checkpointsWith, storeOf } from './support/stores.ts';
import { deferred, failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { later, letPass, until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

const sessionId = 'order-7';

describe('a delegation', () => {
  it('gives the sub-agent the prompt alone, and its last words to the model of the lead', async () => {
    const { subagent, model } = scripted('clerk', ['Filed under F.'], { instructions: 'You file.' });
    const lead = mockModel([delegate('clerk'), 'All done.']);
    const result = await createAgent({
      provider: lead,
      instructions: 'You lead.',
      subagents: [subagent],
    }).send('File this.');
    expect(lines(model.calls[0]?.messages ?? [])).toEqual(['system You file.', 'user Work, clerk.']);
    expect(result).toMatchObject({ text: 'All done.', steps: 2 });
    expect(resultOfCall(result.messages, 'call_clerk')?.result).toBe(
      'Filed under F.\n\n[sub-agent: clerk, steps: 1, finish reason: stop, taskId: task_1]',
    );
    expectValid(result.messages);
  });

  it('numbers tasks in the order of their calls, over all steps', async () => {
    const clerk = scripted('clerk', ['one', 'two', 'three']);
    const lead = mockModel([
      { toolCalls: [task('clerk'), { ...task('clerk'), id: 'call_2' }] },
      { toolCalls: [{ ...task('clerk'), id: 'call_3' }] },
      'All done.',
    ]);
    const { toolCalls } = await createAgent({ provider: lead, subagents: [clerk.subagent] }).send('go');
    expect(toolCalls.map(({ result }) => /taskId: (\w+)/.exec(JSON.stringify(result))?.[1])).toEqual([
      'task_1',
      'task_2',
      'task_3',
    ]);
  });

  it('offers the sub-agents by name and description, and refuses an unknown one', async () => {
    const lead = mockModel([{ toolCalls: [task('nobody')] }, 'All done.']);
    const { subagent } = scripted('clerk', []);
    const { toolCalls } = await createAgent({ provider: lead, subagents: [subagent] }).send('go');
    const [tool] = lead.calls[0]?.tools ?? [];
    expect(tool).toMatchObject({
      name: 'task',
      description: expect.stringContaining('clerk: Does clerk work.'),
    });
    expect(toolCalls).toMatchObject([{ toolName: 'task', kind: 'validation' }]);
  });

  it('is not offered below the deepest level', async () => {
    const deepest = scripted('c', ['C.']);
    const middle = scripted('b', [delegate('c'), 'B.'], { subagents: [deepest.subagent] });
    const first = scripted('a', [delegate('b'), 'A.'], { subagents: [middle.subagent] });
    const agentOf = (maxSubagentDepth: number | undefined) =>
      createAgent({
        provider: mockModel([delegate('a'), 'Done.']),
        subagents: [first.subagent],
        maxSubagentDepth,
      });
    await agentOf(2).send('go');
    expect(middle.model.calls[0]?.tools).toEqual([]);
    expect(deepest.model.calls).toHaveLength(0);
  });

  it('nests five levels deep', async () => {
    let below = scripted('level_5', ['Bottom.']).subagent;
    for (let level = 4; level >= 1; level -= 1)
      below = scripted(`level_${level}`, [delegate(`level_${level + 1}`), `Level ${level}.`], {
        subagents: [below],
      }).subagent;
    const agent = createAgent({ provider: mockModel([delegate('level_1'), 'Top.']), subagents: [below] });
    const { text, usage } = await agent.send('go');
    expect({ text, calls: usage.modelCalls }).toEqual({ text: 'Top.', calls: 11 });
  });

  it.each([
    ['max-steps', { maxSteps: 1 }, 'used up its steps', 'steps: 1, finish reason: max-steps'],
    [
      'limit',
      { limits: { maxModelCalls: 1 } },
      'reached the limit maxModelCalls (1 of 1)',
      'steps: 1, finish reason: limit',
    ],
  ])('that ends %s is an error that says which and how far', async (_reason, more, how, footer) => {
    const look = spyTool('look');
    const { subagent } = scripted('clerk', [{ text: 'Looking.', toolCalls: [{ name: 'look' }] }], {
      tools: [look.tool],
      ...more,
    });
    const agent = createAgent({ provider: mockModel([delegate('clerk'), 'Pity.']), subagents: [subagent] });
    const { toolCalls } = await agent.send('go');
    const { error } = toolCalls[0]?.result as { error: string };
    expect(toolCalls[0]).toMatchObject({ kind: 'execution', isError: true });
    expect(error).toContain(`The sub-agent "clerk" ${how}. Its last words: Looking.`);
    expect(error).toContain(footer);
  });

  it('whose model fails is an error, and what it had spent is counted', async () => {
    const failure = new LLMProviderError('Overloaded.', { kind: 'api', status: 400, retryable: false });
    const { subagent } = scripted('clerk', [calling('look'), failure], { tools: [spyTool('look').tool] });
    const agent = createAgent({ provider: mockModel([delegate('clerk'), 'Pity.']), subagents: [subagent] });
    const { toolCalls, usage } = await agent.send('go');
    expect(toolCalls[0]).toMatchObject({ kind: 'execution' });
    expect(JSON.stringify(toolCalls[0]?.result)).toContain('failed: Overloaded.');
    expect(JSON.stringify(toolCalls[0]?.result)).toContain('steps: 1, finish reason: error');
    expect(usage).toMatchObject({ modelCalls: 3, delegated: { runs: 1, modelCalls: 1 } });
  });

  it('has the model and provider of the lead unless it has its own', async () => {
    const lead = mockModel([delegate('plain', 'other', 'own'), 'a', 'b', 'Done.']);
    const own = mockModel(['c']);
    const describe = (name: string) => ({ name, description: name });
    const agent = createAgent({
      provider: lead,
      model: () => 'gpt-9',
      toolConcurrency: 1,
      subagents: [
        describe('plain'),
        { ...describe('other'), model: 'gpt-1' },
        { ...describe('own'), provider: own },
      ],
    });
    await agent.send('go');
    expect(lead.calls.map(({ model }) => model)).toEqual(['gpt-9', 'gpt-9', 'gpt-1', 'gpt-9']);
    expect(own.calls[0]?.model).toBeUndefined();
  });

  it('works for the same principal with the same metadata, and its hooks and tools know where they are', async () => {
    const seen: ToolContext[] = [];
    const hooked: (HookContext & { readonly at: string })[] = [];
    const look = spyTool('look', (_args, ctx) => void seen.push(ctx));
    const inner = scripted('inner', [calling('look'), 'Seen.'], { tools: [look.tool] });
    const outer = scripted('outer', [delegate('inner'), 'Done.'], { subagents: [inner.subagent] });
    const at = (name: string) => (ctx: HookContext) => void hooked.push({ ...ctx, at: name });
    const agent = createAgent({
      provider: mockModel([delegate('outer'), 'All done.']),
      subagents: [outer.subagent],
      hooks: { beforeModel: at('model'), onFinish: at('finish') },
    });
    await agent.send('go', { metadata: { tenant: 't' }, principal: { id: 'ann' } });
    expect(seen[0]).toMatchObject({
      agentName: 'inner',
      subagentPath: ['outer', 'inner'],
      metadata: { tenant: 't' },
      principal: { id: 'ann' },
    });
    expect(hooked.map((ctx) => `${ctx.at} ${ctx.subagentPath?.join('/') ?? ''}`)).toEqual([
      'model ',
      'model outer',
      'model outer/inner',
      'model outer/inner',
      'finish outer/inner',
      'model outer',
      'finish outer',
      'model ',
      'finish ',
    ]);
  });

  it('sees the state of the caller, and what its tools change of it comes back with its result', async () => {
    const seen: unknown[] = [];
    const add = spyTool('add', (_args, ctx) => {
      seen.push(ctx.businessState);
      ctx.businessState = [...(ctx.businessState as string[]), ctx.agentName];
    });
    const { subagent } = scripted('clerk', [calling('add'), calling('add'), 'Added.'], { tools: [add.tool] });
    const agent = createAgent({
      provider: mockModel([calling('add'), delegate('clerk'), 'Done.']),
      tools: [add.tool],
      subagents: [subagent],
    });
    const { businessState } = await agent.send('go', { businessState: [] });
    expect(seen).toEqual([[], ['agent'], ['agent', 'clerk']]);
    expect(businessState).toEqual(['agent', 'clerk', 'clerk']);
  });

  it('is heard: its events lie among those of the lead, numbered with them, and say whose they are', async () => {
    const look = spyTool('look');
    const { subagent } = scripted('clerk', [calling('look'), 'Filed.'], { tools: [look.tool] });
    const agent = createAgent({
      provider: mockModel([delegate('clerk'), 'All done.']),
      subagents: [subagent],
    });
    const run = agent.stream('go');
    let text = '';
    const reading = (async () => {
      for await (const delta of run.textStream) text += delta;
    })();
    const events = await eventsOf(run);
    await reading;
    expect(text).toBe('All done.');
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index));
    const own = (event: AgentEvent): boolean => event.subagentPath === undefined;
    expect(events.filter(own).map(({ type }) => type)).not.toContain('tool.resume');
    expect(events.findIndex(({ type }) => type === 'run.done')).toBeLessThan(events.length - 1);
    expect(events.filter(own).at(-1)).toMatchObject({ type: 'run.done', finishReason: 'stop' });
    const inside = events.filter((event) => !own(event) && event.type !== 'checkpoint.saved');
    expect(inside.map(({ type }) => type)).toEqual([
      'run.start',
      'step.start',
      'tool.start',
      'tool.done',
      'step.done',
      'step.start',
      'text.delta',
      'text.done',
      'step.done',
      'run.done',
    ]);
    for (const event of inside)
      expect(event).toMatchObject({ subagentPath: ['clerk'], taskToolCallId: 'call_clerk' });
  });

  it('counts to the limits of the lead while it runs', async () => {
    const look = spyTool('look');
    const { subagent } = scripted('clerk', [calling('look'), calling('look'), calling('look')], {
      tools: [look.tool],
    });
    const agent = createAgent({
      provider: mockModel([delegate('clerk')]),
      subagents: [subagent],
      limits: { maxModelCalls: 3 },
    });
    const result = await agent.send('go');
    expect(result).toMatchObject({ finishReason: 'limit', limit: { name: 'maxModelCalls', used: 3 } });
    expect(look.runs).toHaveLength(2);
  });
});

it('a sub-agent counts to the limits of the session, with all turns before', async () => {
  const look = spyTool('look');
  const { subagent } = scripted('clerk', [calling('look'), calling('look'), calling('look')], {
    tools: [look.tool],
  });
  const agent = createAgent({
    provider: mockModel(['Hello.', delegate('clerk')]),
    subagents: [subagent],
  });
  const session = agent.session({ id: 'chat', limits: { maxModelCalls: 4 } });
  await session.send('hi');
  expect(await session.send('go')).toMatchObject({ finishReason: 'limit', usage: { modelCalls: 3 } });
  expect(look.runs).toHaveLength(2);
});

describe('sub-agents that cannot be used are refused by name when the agent is made', () => {
  const provider = mockModel([]);
  const good = { name: 'clerk', description: 'Files.' };
  const taskTool = spyTool('task').tool;
  const look = spyTool('look').tool;
  it.each<[string, object]>([
    ['subagents', { subagents: {} }],
    ['subagents[0]', { subagents: ['clerk'] }],
    ['subagents[0].name', { subagents: [{ description: 'Files.' }] }],
    ['subagents.clerk.description', { subagents: [{ name: 'clerk' }] }],
    ['subagents.clerk.description', { subagents: [{ name: 'clerk', description: '' }] }],
    ['subagents', { subagents: [good, { ...good, description: 'Another.' }] }],
    ['subagents.clerk.subagents', { subagents: [{ ...good, subagents: [good, good] }] }],
    ['tools', { subagents: [good], tools: [taskTool] }],
    ['subagents.clerk.tools', { subagents: [{ ...good, subagents: [good], tools: [taskTool] }] }],
    ['subagents.clerk.tools', { subagents: [{ ...good, tools: [look, look] }] }],
    ['subagents.clerk.tools', { subagents: [{ ...good, tools: [{}] }] }],
    ['subagents.clerk.provider', { subagents: [{ ...good, provider: {} }] }],
    ['subagents.clerk.instructions', { subagents: [{ ...good, instructions: 5 }] }],
    ['subagents.clerk.maxSteps', { subagents: [{ ...good, maxSteps: 0 }] }],
    ['subagents.clerk.limits.tokens', { subagents: [{ ...good, limits: { tokens: 1 } }] }],
    ['subagents.clerk.toolConcurrency', { subagents: [{ ...good, toolConcurrency: 0 }] }],
    ['subagents.clerk.prompt', { subagents: [{ ...good, prompt: 'Hi.' }] }],
    ['maxSubagentDepth', { subagents: [good], maxSubagentDepth: -1 }],
  ])('%s', (option, config) => {
    expect(() => createAgent({ provider, ...config })).toThrow(
      expect.objectContaining({
        code: 'LOUSHO_CONFIG_INVALID',
        details: expect.objectContaining({ option }),
      }),
    );
  });

  it('and an agent without any may have a tool of its own called task', async () => {
    const agent = createAgent({
      provider: mockModel([{ toolCalls: [{ name: 'task' }] }, 'ok']),
      tools: [taskTool],
      subagents: [],
    });
    expect((await agent.send('go')).toolCalls).toMatchObject([{ result: 'task done' }]);
  });
});

/** A call that goes on with an earlier task. */
const goOn = (agent: string, taskId: string, id = `go_on_${agent}`) => ({
  ...task(agent, 'And now?'),
  args: { agent, prompt: 'And now?', taskId },
  id,
});
const codeOf = (result: unknown): unknown => (result as { code?: string } | undefined)?.code;

onEveryStore('a task that the lead goes on with', (world) => {
  it('remembers what was said, keeps its id, and takes none from later tasks', async () => {
    const clerk = scripted('clerk', ['Filed under F.', 'Found under F.', 'Other.'], {
      instructions: 'You file.',
    });
    const lead = mockModel([
      delegate('clerk'),
      { toolCalls: [goOn('clerk', 'task_1')] },
      { toolCalls: [{ ...task('clerk'), id: 'call_other' }] },
      'All done.',
    ]);
    const agent = world.agent({ provider: lead, subagents: [clerk.subagent] });
    const { messages, usage } = await agent.send('go', { sessionId });
    expect(lines(clerk.model.calls[1]?.messages ?? [])).toEqual([
      'system You file.',
      'user Work, clerk.',
      'assistant Filed under F.',
      'user And now?',
    ]);
    expect(resultOfCall(messages, 'go_on_clerk')?.result).toBe(
      'Found under F.\n\n[sub-agent: clerk, steps: 1, finish reason: stop, taskId: task_1]',
    );
    expect(resultOfCall(messages, 'call_other')?.result).toContain('taskId: task_2');
    expect(lines(clerk.model.calls[2]?.messages ?? [])).toHaveLength(2);
    expect(usage).toMatchObject({ modelCalls: 7, delegated: { runs: 3, modelCalls: 3 } });
  });

  it('is there for a later run of the session, in another process, also a third time', async () => {
    const clerk = scripted('clerk', ['one', 'two', 'three']);
    const agentIn = (process: Pick<World, 'agent'>, script: Parameters<typeof mockModel>[0]) =>
      process.agent({ provider: mockModel(script), subagents: [clerk.subagent] });
    await agentIn(world, [delegate('clerk'), 'ok']).send('go', { sessionId });
    for (const input of ['again', 'once more'])
      await agentIn(world.otherProcess(), [{ toolCalls: [goOn('clerk', 'task_1')] }, 'ok']).send(input, {
        sessionId,
      });
    expect(lines(clerk.model.calls[2]?.messages ?? [])).toEqual([
      'user Work, clerk.',
      'assistant one',
      'user And now?',
      'assistant two',
      'user And now?',
    ]);
  });

  it('is there for a later turn of a conversation', async () => {
    const clerk = scripted('clerk', ['one', 'two']);
    const lead = mockModel([delegate('clerk'), 'ok', { toolCalls: [goOn('clerk', 'task_1')] }, 'ok']);
    const session = world.agent({ provider: lead, subagents: [clerk.subagent] }).session({ id: 'chat' });
    await session.send('go');
    await session.send('again');
    expect(lines(clerk.model.calls[1]?.messages ?? [])).toHaveLength(3);
  });

  it('goes with its conversation when that is cleared', async () => {
    const clerk = scripted('clerk', ['one', 'two']);
    const lead = mockModel([delegate('clerk'), { toolCalls: [goOn('clerk', 'task_1')] }, 'ok']);
    const session = world.agent({ provider: lead, subagents: [clerk.subagent] }).session({ id: 'chat' });
    await session.send('go');
    expect(((await world.store.sessions.list?.()) ?? []).length).toBe(3);
    await session.clear();
    expect(await world.store.sessions.list?.()).toEqual(['chat']);
  });

  it.each([
    ['unknown', 'task_7', 'clerk'],
    ['of another sub-agent', 'task_1', 'other'],
  ])('and that is %s is an error with a code, and the lead goes on', async (_what, taskId, name) => {
    const [clerk, other] = [scripted('clerk', ['one']), scripted('other', [])];
    const lead = mockModel([delegate('clerk'), { toolCalls: [goOn(name, taskId)] }, 'All done.']);
    const agent = world.agent({ provider: lead, subagents: [clerk.subagent, other.subagent] });
    const { messages, text } = await agent.send('go', { sessionId });
    expect(text).toBe('All done.');
    const refused = resultOfCall(messages, `go_on_${name}`);
    expect(refused).toMatchObject({ kind: 'execution', isError: true });
    expect(codeOf(refused?.result)).toBe('LOUSHO_SUBAGENT_TASK_NOT_FOUND');
  });

  it('belongs to its session: another one does not find it, and its own still does', async () => {
    const clerk = scripted('clerk', ['one', 'two']);
    const lead = mockModel([
      delegate('clerk'),
      'ok',
      ...[1, 2].flatMap(() => [{ toolCalls: [goOn('clerk', 'task_1')] }, 'ok']),
    ]);
    const agent = world.agent({ provider: lead, subagents: [clerk.subagent] });
    await agent.send('go', { sessionId: 'alpha' });
    const beta = await agent.send('go', { sessionId: 'beta' });
    expect(codeOf(resultOfCall(beta.messages, 'go_on_clerk')?.result)).toBe('LOUSHO_SUBAGENT_TASK_NOT_FOUND');
    const alpha = await agent.send('again', { sessionId: 'alpha' });
    expect(resultOfCall(alpha.messages, 'go_on_clerk')?.result).toContain('two');
  });

  it('twice at one moment goes on once', async () => {
    const clerk = scripted('clerk', ['one', 'two']);
    const lead = mockModel([
      delegate('clerk'),
      { toolCalls: [goOn('clerk', 'task_1', 'first'), goOn('clerk', 'task_1', 'second')] },
      'All done.',
    ]);
    const agent = world.agent({ provider: lead, subagents: [clerk.subagent] });
    const { messages } = await agent.send('go', { sessionId });
    expect(resultOfCall(messages, 'first')?.result).toContain('two');
    expect(codeOf(resultOfCall(messages, 'second')?.result)).toBe('LOUSHO_SUBAGENT_TASK_BUSY');
  });

  it('and was pruned is not found, but one that has begun goes on', async () => {
    const flaky = failingOnceTool('flaky');
    const clerk = scripted('clerk', ['one', calling('flaky'), 'two'], { tools: [flaky.tool] });
    const lead = mockModel([
      delegate('clerk'),
      { toolCalls: [goOn('clerk', 'task_1')] },
      'ok',
      { toolCalls: [goOn('clerk', 'task_1', 'later')] },
      'All done.',
    ]);
    const agent = world.agent({ provider: lead, subagents: [clerk.subagent] });
    const { sessions } = world.store;
    const forget = async (): Promise<void> => {
      for (const id of (await sessions.list?.()) ?? []) await sessions.delete(id);
    };
    await rejection(agent.send('go', { sessionId }));
    await forget();
    const result = await agent.resume(sessionId);
    expect(resultOfCall(result?.messages ?? [], 'go_on_clerk')?.result).toContain('two');
    await forget();
    const { messages } = await agent.send('again', { sessionId });
    expect(codeOf(resultOfCall(messages, 'later')?.result)).toBe('LOUSHO_SUBAGENT_TASK_NOT_FOUND');
  });

  it('keeps its place when a hook replaces what it said', async () => {
    const clerk = scripted('clerk', ['one', 'two']);
    const lead = mockModel([delegate('clerk'), { toolCalls: [goOn('clerk', 'task_1')] }, 'All done.']);
    const agent = world.agent({
      provider: lead,
      subagents: [clerk.subagent],
      hooks: { afterTool: () => ({ result: 'hidden' }) },
    });
    const { messages } = await agent.send('go', { sessionId });
    expect(resultOfCall(messages, 'go_on_clerk')?.result).toBe('hidden');
    expect(lines(clerk.model.calls[1]?.messages ?? [])).toHaveLength(3);
  });
});

it('a task is remembered by a run without a store, too, for as long as it runs', async () => {
  const clerk = scripted('clerk', ['one', 'two']);
  const lead = mockModel([delegate('clerk'), { toolCalls: [goOn('clerk', 'task_1')] }, 'All done.']);
  await createAgent({ provider: lead, subagents: [clerk.subagent] }).send('go');
  expect(lines(clerk.model.calls[1]?.messages ?? [])).toHaveLength(3);
});

onEveryStore('a durable delegation', (world) => {
  it('shows what the sub-agent has spent so far in the record of the lead, and moves it with the result', async () => {
    const seen: (Checkpoint | null)[] = [];
    const probe = spyTool('probe', async () => void seen.push(await world.stored(sessionId)));
    const { subagent } = scripted('clerk', [calling('probe'), calling('probe'), 'Filed.'], {
      tools: [probe.tool],
    });
    const agent = world.agent({ provider: mockModel([delegate('clerk'), 'Done.']), subagents: [subagent] });
    const { usage } = await agent.send('go', { sessionId });
    expect(seen.map((stored) => stored?.delegatedInFlight.map((child) => child.usage.modelCalls))).toEqual([
      [1],
      [2],
    ]);
    expect(seen.map((stored) => stored?.usage.modelCalls)).toEqual([1, 1]);
    expect(usage).toMatchObject({ modelCalls: 5, delegated: { runs: 1, modelCalls: 3 } });
    expect(usage.byModel['clerk-model']).toMatchObject({ modelCalls: 3 });
    for (const save of await world.saves(sessionId)) {
      const [inFlight] = save.delegatedInFlight;
      // Never in both, never in none.
      if (save.usage.delegated !== undefined) expect(inFlight).toBeUndefined();
    }
    expect((await world.stored(sessionId))?.delegatedInFlight).toEqual([]);
  });

  it('shows what sub-agents of the sub-agent have spent, too', async () => {
    const seen: (Checkpoint | null)[] = [];
    const probe = spyTool('probe', async () => void seen.push(await world.stored(sessionId)));
    const inner = scripted('inner', [calling('probe'), 'Probed.'], { tools: [probe.tool] });
    const outer = scripted('outer', [delegate('inner'), 'Done.'], { subagents: [inner.subagent] });
    const agent = world.agent({
      provider: mockModel([delegate('outer'), 'All done.']),
      subagents: [outer.subagent],
    });
    const { usage } = await agent.send('go', { sessionId });
    expect(seen[0]?.delegatedInFlight.map((child) => child.usage.modelCalls)).toEqual([2]);
    expect(usage).toMatchObject({ modelCalls: 6, delegated: { runs: 1, modelCalls: 4 } });
  });

  it('leaves nothing of the sub-agent behind, and shows only the lead while it runs', async () => {
    const seen: unknown[] = [];
    const probe = spyTool('probe', async (_args, ctx) => {
      seen.push(
        (await agent.pending()).map((run) => run.sessionId),
        ctx.sessionId,
      );
      seen.push((await world.checkpoints.list()).length);
    });
    const { subagent } = scripted('clerk', [calling('probe'), 'Filed.'], { tools: [probe.tool] });
    const agent = world.agent({ provider: mockModel([delegate('clerk'), 'Done.']), subagents: [subagent] });
    await agent.send('go', { sessionId });
    expect(seen).toEqual([[sessionId], 'order-7/call_clerk', 2]);
    expect((await world.checkpoints.list()).map((entry) => entry.sessionId)).toEqual([sessionId]);
    expect(await agent.pending()).toEqual([]);
  });

  it('goes on where it stopped when a tool of the sub-agent rejected the run', async () => {
    const look = spyTool('look');
    const flaky = failingOnceTool('flaky');
    const { subagent, model } = scripted('clerk', [calling('look'), calling('flaky'), 'Filed.'], {
      tools: [look.tool, flaky.tool],
    });
    const lead = mockModel([delegate('clerk'), 'Done.']);
    const agent = world.agent({ provider: lead, subagents: [subagent] });
    const error = await rejection(agent.send('go', { sessionId }));
    expect(error).toBeInstanceOf(PropagatingToolError);
    expect(error).toMatchObject({ details: { toolName: 'flaky' } });
    expect(await agent.pending()).toMatchObject([{ sessionId, status: 'in-progress', attempts: 1 }]);
    const result = await agent.resume(sessionId);
    expect(result).toMatchObject({ text: 'Done.', usage: { modelCalls: 5, delegated: { modelCalls: 3 } } });
    expect([look.runs.length, flaky.runs.length, model.calls.length]).toEqual([1, 2, 3]);
  });

  it('counts the model call that a stop cut off also when the sub-agent itself cannot be stored any more', async () => {
    const asked = deferred();
    let isBroken = false;
    const checkpoints = checkpointsWith(world.checkpoints, {
      async saveIfLeased(id, checkpoint, owner, fence) {
        if (isBroken && id !== sessionId)
          throw new SDKError('LOUSHO_STORE_WRITE_FAILED', { operation: 'save', id });
        return world.checkpoints.saveIfLeased(id, checkpoint, owner, fence);
      },
    });
    const { subagent } = scripted('clerk', [
      async () => (asked.resolve(), new Promise<never>(() => undefined)),
    ]);
    const agent = world.agent({
      store: storeOf(checkpoints),
      provider: mockModel([delegate('clerk')]),
      subagents: [subagent],
    });
    const stop = new AbortController();
    const sending = agent.send('go', { sessionId, signal: stop.signal });
    await asked.promise;
    isBroken = true;
    stop.abort();
    const { usage } = await letPass(world.clock, sending);
    expect(usage).toMatchObject({ modelCalls: 2, delegated: { modelCalls: 1 } });
  });

  it('that waits for a person when the run is stopped goes with everything below it', async () => {
    const started = deferred();
    const slow = spyTool('slow', async (_args, ctx) => {
      started.resolve();
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
      throw new Error('stopped');
    });
    const sign = gatedTool('sign');
    const notary = scripted('notary', [calling('sign')], { tools: [sign.tool] });
    const clerk = scripted('clerk', [delegate('notary')], { subagents: [notary.subagent] });
    const { subagent: runner } = scripted('runner', [calling('slow')], { tools: [slow.tool] });
    const agent = world.agent({
      provider: mockModel([delegate('clerk', 'runner')]),
      subagents: [clerk.subagent, runner],
    });
    const stop = new AbortController();
    const sending = agent.send('go', { sessionId, signal: stop.signal });
    await started.promise;
    await until(async () => (await world.checkpoints.list({ status: 'awaiting-approval' })).length === 2);
    stop.abort();
    expect(await letPass(world.clock, sending)).toMatchObject({ finishReason: 'aborted' });
    expect((await world.checkpoints.list()).map((entry) => entry.sessionId)).toEqual([sessionId]);
    expect(sign.runs).toEqual([]);
  });

  it('that a person stops is stopped with the run, and nothing of it runs later', async () => {
    const started = deferred();
    const slow = spyTool('slow', async (_args, ctx) => {
      started.resolve();
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
      throw new Error('stopped');
    });
    const { subagent, model } = scripted('clerk', [calling('slow')], { tools: [slow.tool] });
    const lead = mockModel([delegate('clerk'), 'Done.']);
    const agent = world.agent({ provider: lead, subagents: [subagent] });
    const stop = new AbortController();
    const sending = agent.send('go', { sessionId, signal: stop.signal });
    await started.promise;
    stop.abort();
    const result = await letPass(world.clock, sending);
    expect(result.finishReason).toBe('aborted');
    const cancelled = resultOfCall(result.messages, 'call_clerk');
    expect(cancelled?.kind).toBe('cancelled');
    expect(JSON.stringify(cancelled?.result)).toContain('The sub-agent \\"clerk\\" was stopped with the run');
    expect(result.usage).toMatchObject({ modelCalls: 2, delegated: { modelCalls: 1 } });
    expect((await world.checkpoints.list()).map((entry) => entry.sessionId)).toEqual([sessionId]);
    await agent.send('and now?', { sessionId });
    expect([slow.runs.length, model.calls.length]).toEqual([1, 1]);
  });

  it('is suspended by a shutdown, and another process goes on at once without starting it over', async () => {
    const started = deferred();
    const finish = deferred<string>();
    const slow = spyTool('slow', async () => {
      started.resolve();
      return finish.promise;
    });
    const make = (script: Parameters<typeof scripted>[1]) => {
      const clerk = scripted('clerk', script, { tools: [slow.tool] });
      return { clerk, lead: mockModel([delegate('clerk'), 'Done.'], { answerBy: 'step' }) };
    };
    const first = make([calling('slow'), 'Never.']);
    const agent = world.agent({ provider: first.lead, subagents: [first.clerk.subagent] });
    const sending = rejection(agent.send('go', { sessionId }));
    await started.promise;
    const down = agent.shutdown({ timeoutMs: 5_000 });
    finish.resolve('slow done');
    await letPass(world.clock, down);
    expect(await sending).toMatchObject({ code: 'LOUSHO_SHUTDOWN' });
    expect(first.clerk.model.calls).toHaveLength(1);
    const second = make(['Filed.']);
    const other = world.otherProcess().agent({ provider: second.lead, subagents: [second.clerk.subagent] });
    const result = await other.resume(sessionId);
    expect(result).toMatchObject({ text: 'Done.', usage: { modelCalls: 4, delegated: { modelCalls: 2 } } });
    expect(slow.runs).toHaveLength(1);
  });

  it('of a stalled process is waited for, and fenced: it records nothing more', async () => {
    const started = deferred();
    const finish = deferred<string>();
    let isFirst = true;
    const slow = spyTool('slow', async () => {
      if (!isFirst) return 'second';
      isFirst = false;
      started.resolve();
      return finish.promise;
    });
    // Its clock stands still: no heartbeat of it is ever sent.
    const stalled = world.otherProcess(manualClock(world.clock.wallMs()));
    const make = (script: Parameters<typeof scripted>[1]) => {
      const clerk = scripted('clerk', script, { tools: [slow.tool] });
      return { clerk, lead: mockModel([delegate('clerk'), 'Done.'], { answerBy: 'step' }) };
    };
    const first = make([calling('slow'), 'Never.']);
    const dead = stalled.agent({ provider: first.lead, subagents: [first.clerk.subagent] });
    const sending = rejection(dead.send('go', { sessionId }));
    await started.promise;
    await world.clock.advance(60_001);
    const second = make(['Filed.']);
    const agent = world.agent({ provider: second.lead, subagents: [second.clerk.subagent] });
    const result = await letPass(world.clock, agent.send([], { sessionId }));
    expect(result).toMatchObject({ text: 'Done.' });
    expect(resultOfCall(result.messages, 'call_clerk')?.result).toContain('Filed.');
    finish.resolve('late');
    expect(await sending).toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
    expect(first.clerk.model.calls).toHaveLength(1);
    expect((await world.checkpoints.list()).map((entry) => entry.sessionId)).toEqual([sessionId]);
  });

  it('whose lease a dead process kept a little longer is waited for', async () => {
    const flaky = failingOnceTool('flaky');
    const { subagent } = scripted('clerk', [calling('flaky'), 'Filed.'], { tools: [flaky.tool] });
    const agent = world.agent({ provider: mockModel([delegate('clerk'), 'Done.']), subagents: [subagent] });
    await rejection(agent.send('go', { sessionId }));
    const ids = (await world.checkpoints.list()).map((entry) => entry.sessionId);
    const childId = ids.find((id) => classifyCheckpointId(id).kind === 'child') ?? '';
    await world.otherProcess().checkpoints.acquireLease(childId, 'a dead process', 30_000);
    const startedMs = world.clock.wallMs();
    const result = await letPass(world.clock, agent.send([], { sessionId }));
    expect(result).toMatchObject({ text: 'Done.', usage: { modelCalls: 4 } });
    expect(world.clock.wallMs() - startedMs).toBeGreaterThanOrEqual(30_000);
  });

  it('is counted whole when its process dies between its own save and that of its lead', async () => {
    const dying = world.otherProcess(manualClock(world.clock.wallMs()));
    // The lead's response, then the sub-agent's, then what the lead knows of that.
    const crashing = crashingStore(dying.store, { point: { call: 'saveIfLeased#3', when: 'before' } });
    const look = spyTool('look');
    const make = (from: Pick<World, 'agent'>, more: object = {}) => {
      const { subagent } = scripted('clerk', [calling('look'), 'Filed.'], { tools: [look.tool] });
      return from.agent({ provider: mockModel([delegate('clerk')]), subagents: [subagent], ...more });
    };
    void later(make(dying, { store: crashing.store }).send('go', { sessionId }));
    await until(() => crashing.isDead && crashing.underWay.size === 0);
    await world.clock.advance(60_001);
    expect((await world.stored(sessionId))?.delegatedInFlight).toEqual([]);
    const result = await make(world).send([], { sessionId, signal: AbortSignal.abort() });
    expect(result).toMatchObject({ finishReason: 'aborted', usage: { modelCalls: 2 } });
  });

  it('begins anew in a fork of its run, and goes on undisturbed in the run itself', async () => {
    const [look, flaky] = [spyTool('look'), failingOnceTool('flaky')];
    const clerk = scripted('clerk', [], { tools: [look.tool, flaky.tool] });
    const model = mockModel([calling('look'), calling('flaky'), 'Filed.'], { answerBy: 'step' });
    const lead = mockModel([delegate('clerk'), 'Done.'], { answerBy: 'step' });
    const agent = world.agent({ provider: lead, subagents: [{ ...clerk.subagent, provider: model }] });
    await rejection(agent.send('go', { sessionId }));
    const fork = await agent.fork(sessionId, { fromStep: 1 });
    const forked = await agent.resume(fork.sessionId);
    // What the run had spent comes along, that of the sub-agent too.
    expect(forked).toMatchObject({ text: 'Done.', usage: { modelCalls: 7, delegated: { runs: 2 } } });
    expect(look.runs).toHaveLength(2);
    expect(await agent.resume(sessionId)).toMatchObject({ text: 'Done.', usage: { modelCalls: 5 } });
    expect(look.runs).toHaveLength(2);
    const left = (await world.checkpoints.list()).map((entry) => entry.sessionId);
    expect(left.sort()).toEqual([sessionId, fork.sessionId].sort());
  });

  it.each(['load', 'delete'] as const)(
    'removes the checkpoint of a sub-agent whose %s failed at first when the run is stopped, too',
    async (method) => {
      let failures = 0;
      const started = deferred();
      const slow = spyTool('slow', async (_args, ctx) => {
        started.resolve();
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
      });
      const stop = new AbortController();
      const failOnce = (id: string): void => {
        if (!stop.signal.aborted || id === sessionId || failures > 0) return;
        failures += 1;
        throw new SDKError('LOUSHO_STORE_READ_FAILED', { operation: method, id });
      };
      const checkpoints = checkpointsWith(world.checkpoints, {
        async load(id) {
          if (method === 'load') failOnce(id);
          return world.checkpoints.load(id);
        },
        async delete(id, options) {
          if (method === 'delete') failOnce(id);
          return world.checkpoints.delete(id, options);
        },
      });
      const { subagent } = scripted('clerk', [calling('slow')], { tools: [slow.tool] });
      const provider = mockModel([delegate('clerk')]);
      const agent = world.agent({ store: storeOf(checkpoints), provider, subagents: [subagent] });
      const sending = agent.send('go', { sessionId, signal: stop.signal });
      await started.promise;
      stop.abort();
      expect(await letPass(world.clock, sending)).toMatchObject({ finishReason: 'aborted' });
      expect(failures).toBe(1);
      expect((await world.checkpoints.list()).map((entry) => entry.sessionId)).toEqual([sessionId]);
    },
  );

  it('removes the checkpoint of a sub-agent that the store did not delete at first when the run ends', async () => {
    let refusals = 0;
    const checkpoints = checkpointsWith(world.checkpoints, {
      async delete(id, options) {
        if (id.includes('.sub-') && refusals === 0) {
          refusals += 1;
          throw new Error('disk full');
        }
        return world.checkpoints.delete(id, options);
      },
    });
    const { subagent } = scripted('clerk', ['Filed.']);
    const agent = world.agent({
      provider: mockModel([delegate('clerk'), 'Done.']),
      subagents: [subagent],
      store: storeOf(checkpoints),
    });
    expect(await agent.send('go', { sessionId })).toMatchObject({ text: 'Done.' });
    expect(refusals).toBe(1);
    expect((await world.checkpoints.list()).map((entry) => entry.sessionId)).toEqual([sessionId]);
  });
});
