/** Decisions that cannot count: each is told by a code and a hint, and nothing changes: not the run, not its history, not the inbox. */
import { isSDKError, type ApprovalDecision, type ErrorCode } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it, vi } from 'vitest';
import { createAgent, type Agent } from '../src/index.ts';
import { refusal } from './support/read.ts';
import { emailTool, spyTool } from './support/tools.ts';
import { onEveryStore, type World } from './support/world.ts';

/** `email` and a question wait in `job-1`, a second email was decided; `look` is free and has run. */
async function givenPaused(world: World) {
  const email = emailTool();
  const look = spyTool('look');
  const config = {
    provider: mockModel(
      [
        {
          toolCalls: [
            { name: 'email', args: { to: 'bob@example.com' } },
            { name: 'look' },
            {
              name: 'ask_question',
              args: { question: 'When?', options: ['now', 'later'], allowFreeText: false },
            },
            { name: 'email', args: { to: 'eve@example.com' } },
          ],
        },
        'Done.',
      ],
      { answerBy: 'step' },
    ),
    tools: [email.tool, look.tool],
    instructions: 'Mail.',
    askQuestion: true,
  };
  const agent = world.agent(config);
  const { approvalIds = [] } = await agent.send('go', { sessionId: 'job-1' });
  const [mail = '', question = '', decided = ''] = approvalIds;
  await agent.approvals.resolve({ id: decided, approved: false, by: 'ann' });
  const everything = async () => ({
    stored: await world.stored('job-1'),
    saves: (await world.saves('job-1')).length,
    inbox: await world.store.approvals.list(),
    runs: [email.runs.length, look.runs.length, config.provider.calls.length],
  });
  return { agent, email, config, ids: { mail, question, decided }, everything };
}
type Given = Awaited<ReturnType<typeof givenPaused>>;

interface Row {
  readonly code: ErrorCode;
  readonly decision: (ids: Given['ids']) => ApprovalDecision;
  /** Who decides. Default: the agent that paused. */
  readonly by?: (given: Given, world: World) => Agent | Promise<Agent>;
}

const yes = { approved: true };
const rows: { readonly [what: string]: Row } = {
  'an id that never was one': {
    code: 'LOUSHO_APPROVAL_NOT_FOUND',
    decision: () => ({ id: 'a click', ...yes }),
  },
  'an empty id': { code: 'LOUSHO_APPROVAL_NOT_FOUND', decision: () => ({ id: '', ...yes }) },
  'an id that is no text': {
    code: 'LOUSHO_APPROVAL_NOT_FOUND',
    decision: () => ({ id: 7 as never, ...yes }),
  },
  'the id of the run': { code: 'LOUSHO_APPROVAL_NOT_FOUND', decision: () => ({ id: 'job-1', ...yes }) },
  'an id with a path in it': {
    code: 'LOUSHO_APPROVAL_NOT_FOUND',
    decision: ({ mail }) => ({ id: `../${mail}`, ...yes }),
  },
  'an id of no call of this run': {
    code: 'LOUSHO_APPROVAL_ORPHANED',
    decision: ({ mail }) => ({ id: mail.replace(/-\d+$/, '-9'), ...yes }),
  },
  'an id of an older run': {
    code: 'LOUSHO_APPROVAL_ORPHANED',
    decision: () => ({ id: 'job-1.apr-zzzzzzzz-1-0', ...yes }),
  },
  'an id of a run that is not there': {
    code: 'LOUSHO_APPROVAL_ORPHANED',
    decision: ({ mail }) => ({ id: mail.replace('job-1', 'job-2'), ...yes }),
  },
  'a call that is decided': {
    code: 'LOUSHO_APPROVAL_DECIDED',
    decision: ({ decided }) => ({ id: decided, ...yes }),
  },
  'a decision that is neither yes nor no': {
    code: 'LOUSHO_CONFIG_INVALID',
    decision: ({ mail }) => ({ id: mail, approved: 'true' as never }),
  },
  'a note that is no text': {
    code: 'LOUSHO_CONFIG_INVALID',
    decision: ({ mail }) => ({ id: mail, approved: false, note: { text: 'no' } as never }),
  },
  'arguments that do not fit': {
    code: 'LOUSHO_TOOL_ARGS_INVALID',
    decision: ({ mail }) => ({ id: mail, ...yes, args: { to: 7 } }),
  },
  'arguments that are null': {
    code: 'LOUSHO_TOOL_ARGS_INVALID',
    decision: ({ mail }) => ({ id: mail, ...yes, args: null }),
  },
  'arguments that JSON cannot say': {
    code: 'LOUSHO_TOOL_ARGS_INVALID',
    decision: ({ mail }) => ({ id: mail, ...yes, args: { to: 'a', at: () => 1 } as never }),
  },
  'an answer to what is no question': {
    code: 'LOUSHO_TOOL_ARGS_INVALID',
    decision: ({ mail }) => ({ id: mail, ...yes, answer: 'now' }),
  },
  'a question without an answer': {
    code: 'LOUSHO_TOOL_ARGS_INVALID',
    decision: ({ question }) => ({ id: question, ...yes }),
  },
  'an answer of blanks': {
    code: 'LOUSHO_TOOL_ARGS_INVALID',
    decision: ({ question }) => ({ id: question, ...yes, answer: ' ' }),
  },
  'an answer outside the options': {
    code: 'LOUSHO_TOOL_ARGS_INVALID',
    decision: ({ question }) => ({ id: question, ...yes, answer: 'never' }),
  },
  'a question that is changed': {
    code: 'LOUSHO_TOOL_ARGS_INVALID',
    decision: ({ question }) => ({ id: question, ...yes, answer: 'now', args: { question: 'Why?' } }),
  },
  'a process without the tool': {
    code: 'LOUSHO_RESUME_TOOL_MISSING',
    decision: ({ mail }) => ({ id: mail, ...yes }),
    by: ({ config }, world) => world.otherProcess().agent({ ...config, tools: config.tools.slice(1) }),
  },
  'a process that answers while the tool of a sibling call is missing': {
    code: 'LOUSHO_RESUME_TOOL_MISSING',
    decision: ({ question }) => ({ id: question, ...yes, answer: 'now' }),
    by: ({ config }, world) => world.otherProcess().agent({ ...config, tools: config.tools.slice(1) }),
  },
  'an agent that changed, under the policy "error"': {
    code: 'LOUSHO_AGENT_DRIFT',
    decision: ({ mail }) => ({ id: mail, ...yes }),
    by: ({ config }, world) => world.agent({ ...config, instructions: 'Call.', onAgentDrift: 'error' }),
  },
  'an agent without the checkpoint store': {
    code: 'LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE',
    decision: ({ mail }) => ({ id: mail, ...yes }),
    by: ({ config }, { store: { approvals }, ports }) =>
      createAgent({ ...config, store: { approvals }, ports }),
  },
  'an agent without an inbox': {
    code: 'LOUSHO_CONFIG_MISSING_APPROVAL_STORE',
    decision: ({ mail }) => ({ id: mail, ...yes }),
    by: ({ config }, { store: { checkpoints }, ports }) =>
      createAgent({ ...config, store: { checkpoints }, ports }),
  },
  'an agent that is shut down': {
    code: 'LOUSHO_SHUTDOWN',
    decision: ({ mail }) => ({ id: mail, ...yes }),
    async by({ config }, world) {
      const agent = world.agent(config);
      await agent.shutdown();
      return agent;
    },
  },
};

onEveryStore('a decision that cannot count', (world) => {
  it.each(Object.entries(rows))('%s', async (_what, { code, decision, by }) => {
    vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const given = await givenPaused(world);
    const agent = (await by?.(given, world)) ?? given.agent;
    const wrong = decision(given.ids);
    const before = await given.everything();
    const error = await refusal(agent.approvals.resolve(wrong), code);
    expect(error.hint).not.toBe('');
    expect(error.message).not.toContain('undefined');
    await expectStreamRefused(agent, wrong, code);
    expect(await given.everything()).toEqual(before);
    // The right words still count.
    const { mail, question } = given.ids;
    await given.agent.approvals.answer({ id: question, answer: 'Later' });
    const end = await given.agent.approvals.resolve({ id: mail, ...yes });
    expect(end).toMatchObject({ finishReason: 'stop', text: 'Done.' });
    expect(given.email.runs).toEqual([{ to: 'bob@example.com' }]);
  });

  it('while another process executes the run is busy, and stays undecided', async () => {
    const given = await givenPaused(world);
    const { checkpoints } = world.otherProcess().store;
    expect(await checkpoints.acquireLease('job-1', 'somebody', 30_000)).toMatchObject({});
    const before = await given.everything();
    const deciding = refusal(
      given.agent.approvals.resolve({ id: given.ids.mail, ...yes }),
      'LOUSHO_SESSION_BUSY',
    );
    let isOver = false;
    void deciding.then(() => (isOver = true));
    while (!isOver) await world.clock.advance(25);
    expect((await deciding).retryable).toBe(true);
    expect(await given.everything()).toEqual(before);
  });
});

async function expectStreamRefused(agent: Agent, wrong: ApprovalDecision, code: ErrorCode): Promise<void> {
  try {
    await agent.approvals.streamResolve(wrong).result;
  } catch (error) {
    if (isSDKError(error, code)) return;
    throw error;
  }
  throw new Error('The streamed decision counted.');
}
