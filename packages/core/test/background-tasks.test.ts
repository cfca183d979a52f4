/** Tasks in the background: the lead goes on, and asks for their answers when it wants them. */
import {
  LLMProviderError,
  PropagatingToolError,
  classifyCheckpointId,
  type AgentEvent,
  type ExecutionResult,
  type SubAgent,
} from '@lousho/contract';
import { manualClock, mockModel, type MockResponse } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { createAgent } from '../src/index.ts';
import { awaiting, backgroundTask, calling, delegate, inBackground, scripted } from './support/delegating.ts';
import { eventsOf, expectValid, rejection, resultOfCall, thrown } from './support/read.ts';
import { deferred, failingOnceTool, gatedTool, spyTool, type Deferred } from './support/tools.ts';
import { isOpen, later, letPass, until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

const sessionId = 'order-7';

function cancelling(taskId: string): MockResponse {
  return { toolCalls: [{ name: 'agent_cancel', args: { taskId }, id: 'call_cancel' }] };
}

const status: MockResponse = { toolCalls: [{ name: 'agent_status', args: {}, id: 'call_status' }] };

function said(result: Pick<ExecutionResult, 'messages'>, toolCallId: string): unknown {
  return resultOfCall(result.messages, toolCallId)?.result;
}

/** A sub-agent that works until it is let go. */
function patient(name: string, answer = `${name} done.`) {
  const started = deferred();
  const finish: Deferred<string> = deferred();
  const tool = spyTool(`work_${name}`, async () => {
    started.resolve();
    return finish.promise;
  });
  const { subagent, model } = scripted(name, [calling(`work_${name}`), answer], { tools: [tool.tool] });
  return { subagent, model, started, finish, runs: tool.runs };
}

/** A sub-agent whose tool ends only when it is told to. */
function stubborn(name: string) {
  const started = deferred();
  const tool = spyTool(`work_${name}`, async (_args, { signal }) => {
    started.resolve();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    throw new Error('stopped');
  });
  const { subagent, model } = scripted(name, [calling(`work_${name}`), 'Never.'], { tools: [tool.tool] });
  return { subagent, model, started, runs: tool.runs };
}

async function storedIds(world: World): Promise<readonly string[]> {
  return (await world.checkpoints.list()).map((entry) => entry.sessionId);
}

describe('a task in the background', () => {
  it('gives its id at once, works while the lead goes on, and answers when it is awaited', async () => {
    const clerk = patient('clerk');
    const look = spyTool('look', async () => {
      await clerk.started.promise;
      clerk.finish.resolve('ok');
      return 'looked';
    });
    const lead = mockModel([inBackground('clerk'), calling('look'), awaiting('task_1'), 'All done.']);
    const result = await createAgent({
      provider: lead,
      tools: [look.tool],
      subagents: [clerk.subagent],
    }).send('go');
    expect(said(result, 'call_clerk')).toEqual({ taskId: 'task_1', status: 'running', agent: 'clerk' });
    expect(said(result, 'call_await')).toEqual({
      tasks: [
        {
          taskId: 'task_1',
          agent: 'clerk',
          status: 'finished',
          answer: 'clerk done.\n\n[sub-agent: clerk, steps: 2, finish reason: stop, taskId: task_1]',
        },
      ],
    });
    expect(result).toMatchObject({
      text: 'All done.',
      usage: { modelCalls: 6, delegated: { runs: 1, modelCalls: 2 } },
      backgroundTasks: [{ taskId: 'task_1', agent: 'clerk', status: 'finished' }],
    });
    expect(typeof result.backgroundTasks?.[0]?.elapsedMs).toBe('number');
    expectValid(result.messages);
  });

  it('comes with tools beside `task`, whose names an agent with sub-agents does not give to its own', async () => {
    const { subagent } = scripted('clerk', []);
    const lead = mockModel(['Hello.']);
    await createAgent({ provider: lead, subagents: [subagent] }).send('go');
    expect(lead.calls[0]?.tools?.map(({ name }) => name)).toEqual([
      'task',
      'agent_status',
      'agent_await',
      'agent_cancel',
    ]);
    for (const name of ['agent_status', 'agent_await', 'agent_cancel']) {
      const { tool } = spyTool(name);
      const clash = thrown(() => createAgent({ provider: lead, tools: [tool], subagents: [subagent] }));
      expect(clash).toMatchObject({ code: 'LOUSHO_CONFIG_INVALID', details: { option: 'tools', got: name } });
      expect(createAgent({ provider: lead, tools: [tool] })).toBeDefined();
    }
  });

  it.each([
    ['maxConcurrentTasks', { maxConcurrentTasks: 0 }],
    ['maxConcurrentTasks', { maxConcurrentTasks: 1.5 }],
    ['awaitBackgroundOnFinish', { awaitBackgroundOnFinish: 'yes' as unknown as boolean }],
  ])('has options that are checked: %s %o', (option, options) => {
    const error = thrown(() => createAgent({ provider: mockModel([]), ...options }));
    expect(error).toMatchObject({ code: 'LOUSHO_CONFIG_INVALID', details: { option } });
  });

  it('waits for its turn in the order of the calls when enough are at work', async () => {
    const team = ['a', 'b', 'c', 'd', 'e'].map((name) => patient(name));
    const started: string[] = [];
    const agent = createAgent({
      provider: mockModel([
        inBackground('a', 'b', 'c', 'd', 'e'),
        status,
        awaiting('task_5', 'task_4', 'task_3', 'task_2', 'task_1'),
        'All done.',
      ]),
      subagents: team.map(({ subagent }) => subagent),
      maxConcurrentTasks: 2,
      onEvent(event) {
        if (event.type === 'run.start' && event.subagentPath !== undefined)
          started.push(...event.subagentPath);
      },
    });
    const sending = agent.send('go');
    for (const [index, one] of team.entries()) {
      await one.started.promise;
      await until(() => started.length >= Math.min(5, index + 2));
      expect(started).toHaveLength(Math.min(5, index + 2));
      one.finish.resolve('ok');
    }
    const result = await sending;
    // The first two begin together.
    expect([...started.slice(0, 2).sort(), ...started.slice(2)]).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(
      ['a', 'b', 'c', 'd', 'e'].map((name) => (said(result, `call_${name}`) as { status: string }).status),
    ).toEqual(['running', 'running', 'queued', 'queued', 'queued']);
    const { tasks } = said(result, 'call_status') as { tasks: { taskId: string; status: string }[] };
    expect(tasks.map((task) => `${task.taskId} ${task.status}`)).toEqual([
      'task_1 running',
      'task_2 running',
      'task_3 queued',
      'task_4 queued',
      'task_5 queued',
    ]);
    const answers = said(result, 'call_await') as { tasks: { taskId: string }[] };
    expect(answers.tasks.map(({ taskId }) => taskId)).toEqual([
      'task_5',
      'task_4',
      'task_3',
      'task_2',
      'task_1',
    ]);
  });

  it('that fails is an answer that says why, and the lead goes on', async () => {
    const failure = new LLMProviderError('Overloaded.', { kind: 'api', status: 400, retryable: false });
    const broken = scripted('broken', [failure]);
    const lazy = scripted('lazy', [calling('look')], { tools: [spyTool('look').tool], maxSteps: 1 });
    const agent = createAgent({
      provider: mockModel([inBackground('broken', 'lazy'), awaiting('task_1', 'task_2'), 'Pity.']),
      subagents: [broken.subagent, lazy.subagent],
    });
    const result = await agent.send('go');
    expect(said(result, 'call_await')).toMatchObject({
      tasks: [
        {
          taskId: 'task_1',
          status: 'failed',
          error: expect.stringContaining('failed: Overloaded.') as string,
        },
        { taskId: 'task_2', status: 'failed', error: expect.stringContaining('used up its steps') as string },
      ],
    });
    expect(result).toMatchObject({
      text: 'Pity.',
      usage: { modelCalls: 4, delegated: { modelCalls: 1 } },
      backgroundTasks: [
        { taskId: 'task_1', status: 'failed', error: expect.stringContaining('Overloaded.') as string },
        { taskId: 'task_2', status: 'failed' },
      ],
    });
  });

  it.each([
    ['an unknown task', awaiting('task_9'), 'LOUSHO_SUBAGENT_TASK_NOT_FOUND'],
    ['one that is not in the background', awaiting('task_1'), 'LOUSHO_SUBAGENT_TASK_NOT_FOUND'],
    ['one unknown among others', awaiting('task_2', 'task_9'), 'LOUSHO_SUBAGENT_TASK_NOT_FOUND'],
    [
      'the status of an unknown one',
      { toolCalls: [{ name: 'agent_status', args: { taskIds: ['task_9'] }, id: 'call_status' }] },
      'LOUSHO_SUBAGENT_TASK_NOT_FOUND',
    ],
    ['the end of an unknown one', cancelling('task_9'), 'LOUSHO_SUBAGENT_TASK_NOT_FOUND'],
    ['the end of one that has ended', cancelling('task_2'), 'LOUSHO_SUBAGENT_TASK_OVER'],
  ] as const)('that is asked for wrongly is a coded error and no more: %s', async (_what, ask, code) => {
    const clerk = scripted('clerk', ['one', 'two']);
    const look = spyTool('look', async () => until(() => clerk.model.calls.length === 2));
    const agent = createAgent({
      provider: mockModel([
        delegate('clerk'),
        inBackground('clerk'),
        calling('look'),
        ask,
        awaiting('task_2'),
        'ok',
      ]),
      tools: [look.tool],
      subagents: [clerk.subagent],
    });
    const result = await agent.send('go');
    expect(result.toolCalls[3]).toMatchObject({ kind: 'execution', result: { code } });
    expect(said(result, 'call_await')).toMatchObject({ tasks: [{ taskId: 'task_2', status: 'finished' }] });
    expect(result).toMatchObject({ text: 'ok', usage: { modelCalls: 8, delegated: { runs: 2 } } });
  });

  it('is not known in the response that gives it', async () => {
    const clerk = scripted('clerk', ['Filed.']);
    const agent = createAgent({
      provider: mockModel([
        {
          toolCalls: [
            backgroundTask('clerk'),
            { name: 'agent_await', args: { taskIds: ['task_1'] }, id: 'call_await' },
          ],
        },
        { toolCalls: [{ name: 'agent_await', args: { taskIds: ['task_1'] }, id: 'again' }] },
        'ok',
      ]),
      subagents: [clerk.subagent],
      toolConcurrency: 1,
    });
    const result = await agent.send('go');
    expect(said(result, 'call_await')).toMatchObject({ code: 'LOUSHO_SUBAGENT_TASK_NOT_FOUND' });
    expect(said(result, 'again')).toMatchObject({ tasks: [{ status: 'finished' }] });
  });

  it('answers once: whoever awaits it again hears that it has', async () => {
    const clerk = scripted('clerk', ['Filed.']);
    const twice: MockResponse = {
      toolCalls: ['first', 'second'].map((id) => ({
        name: 'agent_await',
        args: { taskIds: ['task_1'] },
        id,
      })),
    };
    const agent = createAgent({
      provider: mockModel([inBackground('clerk'), twice, awaiting('task_1', 'task_1'), 'ok']),
      subagents: [clerk.subagent],
    });
    const result = await agent.send('go');
    expect(said(result, 'call_await')).toEqual({
      tasks: [
        {
          taskId: 'task_1',
          agent: 'clerk',
          status: 'finished',
          error: 'The answer of this task was given before.',
        },
      ],
    });
    expect(said(result, 'first')).toMatchObject({ tasks: [{ answer: expect.any(String) as string }] });
    expect(result.usage).toMatchObject({ modelCalls: 5, delegated: { runs: 1, modelCalls: 1 } });
  });

  it('is stopped by agent_cancel, with what it had spent counted', async () => {
    const clerk = stubborn('clerk');
    const wait = spyTool('wait', () => clerk.started.promise);
    const agent = createAgent({
      provider: mockModel([
        inBackground('clerk'),
        calling('wait'),
        cancelling('task_1'),
        awaiting('task_1'),
        cancelling('task_1'),
        'ok',
      ]),
      tools: [wait.tool],
      subagents: [clerk.subagent],
    });
    const result = await agent.send('go');
    expect(result.toolCalls[2]?.result).toEqual({ taskId: 'task_1', agent: 'clerk', status: 'cancelled' });
    expect(said(result, 'call_await')).toMatchObject({ tasks: [{ status: 'cancelled' }] });
    expect(said(result, 'call_cancel')).toMatchObject({ code: 'LOUSHO_SUBAGENT_TASK_OVER' });
    expect(clerk.model.calls).toHaveLength(1);
    expect(result.usage.delegated).toMatchObject({ runs: 1, modelCalls: 1 });
    expect(result.backgroundTasks).toMatchObject([{ taskId: 'task_1', status: 'cancelled' }]);
  });

  it('that is queued and cancelled never begins', async () => {
    const first = patient('first');
    const second = scripted('second', ['Never.']);
    const agent = createAgent({
      provider: mockModel([inBackground('first', 'second'), cancelling('task_2'), awaiting('task_1'), 'ok']),
      subagents: [first.subagent, second.subagent],
      maxConcurrentTasks: 1,
    });
    const sending = agent.send('go');
    await first.started.promise;
    first.finish.resolve('ok');
    const result = await sending;
    expect(said(result, 'call_cancel')).toMatchObject({ status: 'cancelled' });
    expect(second.model.calls).toHaveLength(0);
    expect(result.usage.delegated).toMatchObject({ runs: 1 });
  });

  it('is cancelled when the lead ends, and nothing of it runs later', async () => {
    const clerk = stubborn('clerk');
    const wait = spyTool('wait', () => clerk.started.promise);
    const agent = createAgent({
      provider: mockModel([inBackground('clerk'), calling('wait'), { text: 'Cut', finishReason: 'length' }]),
      tools: [wait.tool],
      subagents: [clerk.subagent],
    });
    expect(await agent.send('go')).toMatchObject({
      ...{ text: 'Cut', finishReason: 'length' },
      usage: { modelCalls: 4, delegated: { runs: 1, modelCalls: 1 } },
      backgroundTasks: [{ taskId: 'task_1', status: 'cancelled' }],
    });
    expect([clerk.runs.length, clerk.model.calls.length]).toEqual([1, 1]);
  });

  it('is waited for at the end with awaitBackgroundOnFinish, one that needs a person excepted', async () => {
    const clerk = patient('clerk');
    const mail = gatedTool('mail');
    const mailer = scripted('mailer', [calling('mail')], { tools: [mail.tool] });
    const agent = createAgent({
      provider: mockModel([inBackground('clerk', 'mailer'), 'Started.']),
      subagents: [clerk.subagent, mailer.subagent],
      awaitBackgroundOnFinish: true,
    });
    const sending = agent.send('go');
    await clerk.started.promise;
    clerk.finish.resolve('ok');
    const result = await sending;
    expect(result).toMatchObject({
      ...{ text: 'Started.', finishReason: 'stop' },
      usage: { modelCalls: 5, delegated: { runs: 2, modelCalls: 3 } },
      backgroundTasks: [
        { taskId: 'task_1', status: 'finished' },
        { taskId: 'task_2', status: 'cancelled' },
      ],
    });
    expect(mail.runs).toHaveLength(0);
    expect(await agent.approvals.list()).toEqual([]);
  });

  it('ends with a run that uses up its steps', async () => {
    const clerk = patient('clerk');
    const agent = createAgent({
      provider: mockModel([inBackground('clerk')]),
      subagents: [clerk.subagent],
      maxSteps: 1,
    });
    const sending = agent.send('go');
    void later(clerk.started.promise.then(() => clerk.finish.resolve('late')));
    expect(await sending).toMatchObject({
      finishReason: 'max-steps',
      backgroundTasks: [{ status: 'cancelled' }],
    });
  });

  it('counts to the limits of the lead when it comes to rest', async () => {
    const clerk = patient('clerk');
    const tools = [
      spyTool('free', async () => clerk.started.promise),
      spyTool('finish', async () => {
        clerk.finish.resolve('ok');
        await until(() => clerk.model.calls.length === 2);
      }),
    ];
    const lead = mockModel([
      inBackground('clerk'),
      calling('free'),
      calling('finish'),
      awaiting('task_1'),
      'Never.',
    ]);
    const agent = createAgent({
      provider: lead,
      tools: tools.map(({ tool }) => tool),
      subagents: [clerk.subagent],
      limits: { maxModelCalls: 5 },
    });
    const result = await agent.send('go');
    expect(result).toMatchObject({ finishReason: 'limit', limit: { name: 'maxModelCalls', max: 5 } });
    // It had spent one while `finish` was asked for: that counted to nothing yet.
    expect(lead.calls.length).toBeGreaterThanOrEqual(3);
    expect(result.usage.modelCalls).toBe(lead.calls.length + clerk.model.calls.length);
  });

  it('shows its events among those of the lead, all of them before its end', async () => {
    const clerk = scripted('clerk', ['Filed.']);
    const agent = createAgent({
      provider: mockModel([inBackground('clerk'), awaiting('task_1'), 'Done.']),
      subagents: [clerk.subagent],
    });
    const events = await eventsOf(agent.stream('go'));
    const inside = events.filter((event) => event.subagentPath !== undefined);
    expect(inside.map(({ type }) => type).filter((type) => type !== 'checkpoint.saved')).toEqual(
      expect.arrayContaining(['run.start', 'step.start', 'run.done']) as string[],
    );
    expect(inside.every((event: AgentEvent) => event.taskToolCallId === 'call_clerk')).toBe(true);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index));
    expect(events.at(-1)).toMatchObject({ type: 'run.done' });
    expect(events.at(-1)?.subagentPath).toBeUndefined();
  });

  it('keeps a conversation from being handed over while it is open', async () => {
    const clerk = scripted('clerk', ['Filed.']);
    const handoff: MockResponse = { toolCalls: [{ name: 'handoff_to_expert' }] };
    const agent = createAgent({
      provider: mockModel([inBackground('clerk'), handoff, awaiting('task_1'), handoff]),
      subagents: [clerk.subagent],
      handoffs: [{ name: 'expert', description: 'Knows.', provider: mockModel(['I know.']) }],
    });
    const result = await agent.send('go');
    expect(result).toMatchObject({ text: 'I know.', agentName: 'expert' });
    const kinds = result.toolCalls.map(({ toolName, kind }) => `${toolName} ${kind ?? 'done'}`);
    expect(kinds).toEqual([
      'task done',
      'handoff_to_expert not-run',
      'agent_await done',
      'handoff_to_expert done',
    ]);
  });

  it('is a thing of sub-agents too, which end theirs with themselves', async () => {
    const inner = patient('inner');
    const outer = scripted('outer', [inBackground('inner'), awaiting('task_1'), 'Outer.'], {
      subagents: [inner.subagent],
    });
    const agent = createAgent({
      provider: mockModel([inBackground('outer'), awaiting('task_1'), 'Done.']),
      subagents: [outer.subagent],
    });
    const sending = agent.send('go');
    await inner.started.promise;
    inner.finish.resolve('ok');
    expect(await sending).toMatchObject({
      text: 'Done.',
      usage: { modelCalls: 8, delegated: { runs: 1, modelCalls: 5 } },
    });
  });

  it('leaves its words to a task that goes on with it', async () => {
    const clerk = scripted('clerk', ['one', 'two', 'three']);
    const goOn = (id: string, background: boolean) => ({
      name: 'task',
      args: { agent: 'clerk', prompt: 'And now?', taskId: 'task_1', background },
      id,
    });
    const agent = createAgent({
      provider: mockModel([
        inBackground('clerk'),
        { toolCalls: [goOn('early', false)] },
        awaiting('task_1'),
        { toolCalls: [goOn('second', true)] },
        awaiting('task_1'),
        { toolCalls: [goOn('third', false)] },
        'Done.',
      ]),
      subagents: [clerk.subagent],
    });
    const result = await agent.send('go');
    expect(said(result, 'early')).toMatchObject({ code: 'LOUSHO_SUBAGENT_TASK_BUSY' });
    expect(said(result, 'call_await')).toMatchObject({
      tasks: [{ answer: expect.stringContaining('two') as string }],
    });
    expect(said(result, 'third')).toContain('three');
    expect(clerk.model.calls.map(({ messages }) => messages.length)).toEqual([1, 3, 5]);
  });
});

/** The agent of one process: the models answer by the step that they are asked for. */
function team(
  from: Pick<World, 'agent'>,
  script: readonly MockResponse[],
  subagents: readonly SubAgent[],
  more: object = {},
) {
  const lead = mockModel(script, { answerBy: 'step' });
  return { lead, agent: from.agent({ provider: lead, subagents, ...more }) };
}

/** A sub-agent that asks a person before its one tool runs. */
function asking(name: string) {
  const tool = gatedTool(`deploy_${name}`);
  const make = () => {
    const model = mockModel([calling(`deploy_${name}`), `${name} deployed.`], { answerBy: 'step' });
    return { model, subagent: { name, description: name, provider: model, tools: [tool.tool] } };
  };
  return { make, runs: tool.runs };
}

onEveryStore('a task in the background that is stored', (world) => {
  it('pauses the lead when it is awaited, one after the other; one call gives all answers', async () => {
    const [backend, frontend] = [asking('backend'), asking('frontend')];
    const script = [inBackground('backend', 'frontend'), awaiting('task_1', 'task_2'), 'All done.'];
    const inNewProcess = () => {
      const models = [backend.make(), frontend.make()];
      return {
        ...team(
          world.otherProcess(),
          script,
          models.map(({ subagent }) => subagent),
        ),
        models,
      };
    };
    const first = inNewProcess();
    const paused = await first.agent.send('go', { sessionId });
    expect(paused.finishReason).toBe('awaiting-approval');
    const [one, ...others] = await first.agent.approvals.list();
    expect(others).toEqual([]);
    expect(one).toMatchObject({ toolName: 'deploy_backend', subagentPath: ['backend'] });
    expect(paused.backgroundTasks).toMatchObject([
      { taskId: 'task_1', status: 'awaiting-approval', approvalId: one?.id, toolName: 'deploy_backend' },
      { taskId: 'task_2', status: 'awaiting-approval', toolName: 'deploy_frontend' },
    ]);
    const second = inNewProcess();
    const again = await second.agent.approvals.resolve({ id: one?.id ?? '', approved: true });
    expect([backend.runs.length, frontend.runs.length]).toEqual([1, 0]);
    expect(again.finishReason).toBe('awaiting-approval');
    const [two] = await second.agent.approvals.list();
    expect(two).toMatchObject({ toolName: 'deploy_frontend', subagentPath: ['frontend'] });
    expect(two?.id).not.toBe(one?.id);
    const third = inNewProcess();
    const result = await third.agent.approvals.resolve({ id: two?.id ?? '', approved: false });
    expect([backend.runs.length, frontend.runs.length]).toEqual([1, 0]);
    expect(said(result, 'call_await')).toMatchObject({
      tasks: [
        {
          taskId: 'task_1',
          status: 'finished',
          answer: expect.stringContaining('backend deployed.') as string,
        },
        {
          taskId: 'task_2',
          status: 'finished',
          answer: expect.stringContaining('frontend deployed.') as string,
        },
      ],
    });
    expect(result).toMatchObject({
      text: 'All done.',
      usage: { modelCalls: 7, delegated: { runs: 2, modelCalls: 4 } },
    });
    expect([first, second, third].map(({ lead }) => lead.calls.length)).toEqual([2, 0, 1]);
    const refused = await rejection(third.agent.approvals.resolve({ id: one?.id ?? '', approved: true }));
    expect(refused).toMatchObject({ code: 'LOUSHO_APPROVAL_DECIDED' });
    expect(await storedIds(world)).toEqual([sessionId]);
    expectValid(result.messages);
  });

  it('gives people their time from when they are asked, however long it waited before', async () => {
    const backend = asking('backend');
    const mailer = backend.make();
    const wait = spyTool('wait', async () => {
      await until(async () =>
        (await world.checkpoints.list()).some((entry) => entry.status === 'awaiting-approval'),
      );
      await world.clock.advance(50_000);
    });
    const script = [inBackground('backend'), calling('wait'), awaiting('task_1'), 'All done.'];
    const { agent } = team(world, script, [mailer.subagent], { tools: [wait.tool], approvalTtlMs: 60_000 });
    const paused = await letPass(world.clock, agent.send('go', { sessionId }));
    await world.clock.advance(30_000);
    const result = await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    expect(result).toMatchObject({ text: 'All done.' });
    expect(backend.runs).toHaveLength(1);
  });

  it('of a stalled process is fenced off with its lead: another one goes on, and nothing of the first is recorded', async () => {
    const started = deferred();
    const finish: Deferred<string> = deferred();
    const slow = spyTool('slow', async (_args, _ctx, run) => {
      if (run > 1) return 'second';
      started.resolve();
      return finish.promise;
    });
    const script = [inBackground('clerk'), awaiting('task_1'), 'All done.'];
    const make = () => {
      const model = mockModel([calling('slow'), 'Filed.'], { answerBy: 'step' });
      return { model, clerk: { name: 'clerk', description: 'c', provider: model, tools: [slow.tool] } };
    };
    const [first, second] = [make(), make()];
    // Its clock stands still: no heartbeat of it is ever sent.
    const stalled = world.otherProcess(manualClock(world.clock.wallMs()));
    const sending = rejection(team(stalled, script, [first.clerk]).agent.send('go', { sessionId }));
    await started.promise;
    await world.clock.advance(60_001);
    const { agent } = team(world, script, [second.clerk]);
    const result = await letPass(world.clock, agent.send([], { sessionId }));
    expect(result).toMatchObject({ text: 'All done.', usage: { modelCalls: 5, delegated: { runs: 1 } } });
    finish.resolve('late');
    expect(await sending).toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
    expect([first.model.calls.length, second.model.calls.length]).toEqual([1, 1]);
    expect(await storedIds(world)).toEqual([sessionId]);
  });

  it('rests while the lead waits for a person, writes nothing then, and goes on with it', async () => {
    const clerk = patient('clerk');
    const wait = spyTool('wait', async () => clerk.started.promise);
    const tools = [wait.tool, gatedTool('pay').tool];
    const script = [inBackground('clerk'), calling('wait'), calling('pay'), awaiting('task_1'), 'All done.'];
    const first = team(world, script, [clerk.subagent], { tools });
    const sending = later(first.agent.send('go', { sessionId }));
    await until(() => first.lead.calls.length === 3);
    // What it is doing may end.
    expect(await isOpen(sending)).toBe(true);
    clerk.finish.resolve('ok');
    const paused = await sending;
    expect(paused).toMatchObject({
      finishReason: 'awaiting-approval',
      usage: { modelCalls: 4, delegated: { runs: 1, modelCalls: 1 } },
      backgroundTasks: [{ taskId: 'task_1', status: 'running' }],
    });
    const saves = (await world.saves(sessionId)).length;
    await world.clock.advance(60_000);
    expect([(await world.saves(sessionId)).length, clerk.model.calls.length]).toEqual([saves, 1]);
    const model = mockModel([calling('work_clerk'), 'Filed.'], { answerBy: 'step', modelId: 'clerk-model' });
    const subagents = [{ ...clerk.subagent, provider: model }];
    const second = team(world.otherProcess(), script, subagents, { tools });
    const result = await second.agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    expect(result).toMatchObject({
      text: 'All done.',
      usage: { modelCalls: 7, delegated: { runs: 1, modelCalls: 2 } },
      backgroundTasks: [{ status: 'finished' }],
    });
    expect([clerk.runs.length, model.calls.length]).toEqual([1, 1]);
    expect(await storedIds(world)).toEqual([sessionId]);
  });

  it('goes on in another process after a shutdown, one that is queued begins there, and none starts over', async () => {
    const first = patient('first');
    const second = spyTool('second');
    const make = () => {
      const models = [
        mockModel([calling('work_first'), 'First.'], { answerBy: 'step' }),
        mockModel([calling('second'), 'Second.'], { answerBy: 'step' }),
      ] as const;
      const subagents: SubAgent[] = [
        { ...first.subagent, provider: models[0] },
        { name: 'second', description: 'second', provider: models[1], tools: [second.tool] },
      ];
      return { models, subagents };
    };
    const script = [inBackground('first', 'second'), awaiting('task_1', 'task_2'), 'All done.'];
    const [old, next] = [make(), make()];
    const { agent } = team(world, script, old.subagents, { maxConcurrentTasks: 1 });
    const sending = rejection(agent.send('go', { sessionId }));
    await first.started.promise;
    const down = agent.shutdown({ timeoutMs: 5_000 });
    first.finish.resolve('ok');
    await letPass(world.clock, down);
    expect(await sending).toMatchObject({ code: 'LOUSHO_SHUTDOWN' });
    expect(second.runs).toHaveLength(0);
    const other = team(world.otherProcess(), script, next.subagents, { maxConcurrentTasks: 1 });
    expect(await other.agent.resume(sessionId)).toMatchObject({
      text: 'All done.',
      usage: { modelCalls: 7, delegated: { runs: 2, modelCalls: 4 } },
    });
    expect([first.runs.length, second.runs.length]).toEqual([1, 1]);
    expect([...old.models, ...next.models].map(({ calls }) => calls.length)).toEqual([1, 0, 1, 2]);
    expect(await storedIds(world)).toEqual([sessionId]);
  });

  it('that is stopped with its run stays so, and one that is queued never begins', async () => {
    const first = stubborn('first');
    const second = scripted('second', ['Never.']);
    const script = [
      inBackground('first', 'second'),
      awaiting('task_1'),
      status,
      awaiting('task_2'),
      'All done.',
    ];
    const { agent } = team(world, script, [first.subagent, second.subagent], { maxConcurrentTasks: 1 });
    const stop = new AbortController();
    const sending = agent.send('go', { sessionId, signal: stop.signal });
    await first.started.promise;
    stop.abort();
    const aborted = await letPass(world.clock, sending);
    expect(aborted).toMatchObject({
      finishReason: 'aborted',
      backgroundTasks: [{ status: 'cancelled' }, { status: 'cancelled' }],
    });
    expect(await storedIds(world)).toEqual([sessionId]);
    const result = await agent.send([], { sessionId });
    expect(result).toMatchObject({ text: 'All done.', usage: { modelCalls: 6, delegated: { runs: 1 } } });
    expect(said(result, 'call_await')).toMatchObject({ tasks: [{ taskId: 'task_2', status: 'cancelled' }] });
    expect([first.runs.length, second.model.calls.length]).toEqual([1, 0]);
  });

  it('whose tool rejects the run does so when it is awaited; a resume goes on inside it', async () => {
    const look = spyTool('look');
    const flaky = failingOnceTool('flaky');
    const model = mockModel([calling('look'), calling('flaky'), 'Filed.'], { answerBy: 'step' });
    const clerk: SubAgent = {
      name: 'clerk',
      description: 'c',
      provider: model,
      tools: [look.tool, flaky.tool],
    };
    const { agent } = team(world, [inBackground('clerk'), awaiting('task_1'), 'Done.'], [clerk]);
    expect(await rejection(agent.send('go', { sessionId }))).toBeInstanceOf(PropagatingToolError);
    expect(await agent.resume(sessionId)).toMatchObject({ text: 'Done.', usage: { modelCalls: 6 } });
    expect([look.runs.length, flaky.runs.length, model.calls.length]).toEqual([1, 2, 3]);
  });

  it('stops with a lead that was deleted while it ran, and starts nothing more', async () => {
    const clerk = patient('clerk');
    const { agent } = team(world, [inBackground('clerk'), awaiting('task_1'), 'Never.'], [clerk.subagent]);
    const sending = rejection(agent.send('go', { sessionId }));
    await clerk.started.promise;
    await world.checkpoints.delete(sessionId);
    await world.clock.advance(10_001);
    clerk.finish.resolve('late');
    expect(await letPass(world.clock, sending)).toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
    expect(clerk.model.calls).toHaveLength(1);
    await world.checkpoints.prune({ olderThanMs: 0, statuses: ['finished', 'in-progress'] });
    expect(await storedIds(world)).toEqual([]);
  });

  it('begins anew in a fork of its run, and goes on undisturbed in the run itself', async () => {
    const [backend] = [asking('backend')];
    const script = [inBackground('backend'), awaiting('task_1'), 'All done.'];
    const one = backend.make();
    const { agent } = team(world, script, [one.subagent]);
    const paused = await agent.send('go', { sessionId });
    const fork = await agent.fork(sessionId, { fromStep: 1 });
    const forked = await agent.resume(fork.sessionId);
    expect(forked).toMatchObject({ finishReason: 'awaiting-approval' });
    expect(one.model.calls).toHaveLength(2);
    const own = await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    expect(own).toMatchObject({ text: 'All done.', usage: { modelCalls: 5, delegated: { runs: 1 } } });
    const other = await agent.approvals.resolve({ id: forked?.approvalId ?? '', approved: true });
    expect(other).toMatchObject({ text: 'All done.', backgroundTasks: [{ status: 'finished' }] });
    expect(backend.runs).toHaveLength(2);
    expect((await storedIds(world)).toSorted()).toEqual([sessionId, fork.sessionId].toSorted());
  });

  it('is told again with the result of a run that is over, and in a conversation with that of its turn', async () => {
    const { agent } = team(
      world,
      [inBackground('clerk'), awaiting('task_1'), 'Done.'],
      [scripted('clerk', ['Filed.']).subagent],
    );
    const first = await agent.send('go', { sessionId, inputId: 'input-1' });
    const again = await agent.send('go', { sessionId, inputId: 'input-1' });
    expect(again.backgroundTasks).toEqual(first.backgroundTasks);
    const talk = mockModel([inBackground('clerk'), awaiting('task_1'), 'Done.', awaiting('task_1'), 'Pity.']);
    const session = world
      .agent({ provider: talk, subagents: [scripted('clerk', ['Filed.']).subagent] })
      .session({ id: 'talk-1' });
    const turn = await session.send('go', { inputId: 'input-1' });
    expect(turn.backgroundTasks).toMatchObject([{ taskId: 'task_1', status: 'finished' }]);
    expect((await session.send('go', { inputId: 'input-1' })).backgroundTasks).toEqual(turn.backgroundTasks);
    // It was one of that turn.
    const next = await session.send('and now?');
    expect(said(next, 'call_await')).toMatchObject({ code: 'LOUSHO_SUBAGENT_TASK_NOT_FOUND' });
    expect(next.backgroundTasks).toBeUndefined();
  });

  it('goes with the turn that is discarded', async () => {
    const backend = asking('backend');
    const { subagent } = backend.make();
    const { agent } = team(world, [inBackground('backend'), awaiting('task_1'), 'Never.'], [subagent]);
    const session = agent.session({ id: 'talk-1' });
    expect(await session.send('go')).toMatchObject({ finishReason: 'awaiting-approval' });
    const children = () =>
      storedIds(world).then((ids) => ids.filter((id) => classifyCheckpointId(id).kind === 'child'));
    expect(await children()).toHaveLength(1);
    await session.discardPending();
    expect(await children()).toEqual([]);
  });
});

it('a task in the background that waits for a person is carried by the approval of a run without a store', async () => {
  const [backend, frontend] = [asking('backend'), asking('frontend')];
  const models = [backend.make(), frontend.make()];
  const agent = createAgent({
    provider: mockModel([inBackground('backend', 'frontend'), awaiting('task_1', 'task_2'), 'All done.']),
    subagents: models.map(({ subagent }) => subagent),
  });
  let result = await agent.send('go');
  for (let pause = 0; pause < 2; pause += 1) {
    expect(result.finishReason).toBe('awaiting-approval');
    result = await agent.approvals.resolve({ id: result.approvalId ?? '', approved: true });
  }
  expect(result).toMatchObject({ text: 'All done.', usage: { modelCalls: 7 } });
  expect([backend.runs.length, frontend.runs.length]).toEqual([1, 1]);
  expect(models.map(({ model }) => model.calls.length)).toEqual([2, 2]);
});
