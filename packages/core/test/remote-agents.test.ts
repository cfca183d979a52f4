/** Sub-agents that work elsewhere, over a protocol that is somebody else's: what the executor asks of it, and what it takes for an answer. */
import {
  emptyUsage,
  type DelegatedUsage,
  type JsonValue,
  type RemoteAgent,
  type RemoteAnswer,
  type RemoteApproval,
  type RemoteTask,
  type SubAgent,
} from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { task } from './support/delegating.ts';
import { onEveryStore } from './support/world.ts';

const sessionId = 'order-7';
const usage: DelegatedUsage = {
  ...emptyUsage,
  modelCalls: 1,
  inputTokens: 3,
  outputTokens: 2,
  totalTokens: 5,
};
const ended: RemoteAnswer = { type: 'ended', text: 'Worked.', finishReason: 'stop', usage };
const waiting = (id: string, args: JsonValue = { cents: 9 }): RemoteApproval => ({
  ...{ id, kind: 'tool', toolCallId: 'call_0', toolName: 'refund', args },
});

/** One answer after the other; an `Error` is thrown. */
function scriptedRemote(...answers: readonly (RemoteAnswer | Error)[]) {
  const asked: RemoteTask[] = [];
  const stopped: RemoteTask[] = [];
  const left = [...answers];
  const remote: RemoteAgent = {
    async work(given) {
      asked.push(given);
      const answer = left.shift() ?? new Error('It was asked too often.');
      if (answer instanceof Error) throw answer;
      return answer;
    },
    async stop(given) {
      stopped.push(given);
      throw new Error('It does not hear.');
    },
  };
  return { asked, stopped, subagent: { name: 'far', description: 'Far away.', remote } satisfies SubAgent };
}

const give = { toolCalls: [task('far')] };

onEveryStore('a remote agent', (world) => {
  it('is asked under the same ids by whoever resumes the lead, and for another task under others', async () => {
    const { asked, subagent } = scriptedRemote(new Error('The line is down.'), ended, ended);
    const make = (process: Pick<typeof world, 'agent'>) =>
      process.agent({
        provider: mockModel([give, give, 'All done.'], { answerBy: 'step' }),
        subagents: [subagent],
      });
    await expect(make(world).send('go', { sessionId })).rejects.toThrow('The line is down.');
    const result = await make(world.otherProcess()).resume(sessionId);
    expect(result).toMatchObject({
      text: 'All done.',
      usage: { delegated: { runs: 2, modelCalls: 2, totalTokens: 10 } },
    });
    const ids = asked.map((given) => [given.sessionId, given.inputId]);
    expect(ids[1]).toEqual(ids[0]);
    expect(ids[2]).not.toEqual(ids[0]);
    for (const { sessionId: there } of asked) expect(there).toMatch(/^order-7-sub-[a-f0-9]{32}$/);
    expect(asked[0]).toMatchObject({ prompt: 'Work, far.', knownThere: 'nothing', decisions: [] });
  });

  it('whose calls have one id gets each decision for the right one', async () => {
    const { asked, subagent } = scriptedRemote(
      { type: 'waits', approvals: [waiting('a'), waiting('b')] },
      ended,
    );
    const agent = world.agent({ provider: mockModel([give, 'All done.']), subagents: [subagent] });
    const { approvalIds: [first = '', second = ''] = [] } = await agent.send('go', { sessionId });
    await agent.approvals.resolve({ id: second, approved: false, note: 'No.', by: 'ann' });
    const other = world.otherProcess().agent({ provider: mockModel(['All done.']), subagents: [subagent] });
    await other.approvals.resolve({ id: first, approved: true, args: { cents: 5 } });
    expect(asked[1]).toMatchObject({
      sessionId: asked[0]?.sessionId,
      knownThere: 'task',
      decisions: [
        { id: 'a', approved: true, args: { cents: 5 } },
        { id: 'b', approved: false, note: 'No.', by: 'ann' },
      ],
    });
  });

  it.each<[string, RemoteAnswer]>([
    ['waits for nothing', { type: 'waits', approvals: [] }],
    ['asks for what is no JSON', { type: 'waits', approvals: [waiting('a', (() => 1) as never)] }],
    ['has no words', { ...ended, text: undefined } as never],
  ])('that %s has failed its task', async (_what, answer) => {
    const { subagent } = scriptedRemote(answer);
    const agent = world.agent({ provider: mockModel([give, 'I see.']), subagents: [subagent] });
    const result = await agent.send('go', { sessionId });
    expect(result.toolCalls[0]).toMatchObject({ isError: true, result: { code: 'LOUSHO_REMOTE_FAILED' } });
  });

  it('does not go on with what was said to another agent of its name', async () => {
    const local: SubAgent = { name: 'far', description: 'Near.', provider: mockModel(['Here.']) };
    const goOn = { toolCalls: [{ name: 'task', args: { agent: 'far', prompt: 'And?', taskId: 'task_1' } }] };
    const { asked, subagent } = scriptedRemote(ended);
    const first = world.agent({ provider: mockModel([give, 'Done.']), subagents: [local] });
    await first.session({ id: 'chat-1' }).send('go');
    const second = world.agent({ provider: mockModel([goOn, 'I see.']), subagents: [subagent] });
    const result = await second.session({ id: 'chat-1' }).send('go on');
    expect(result.toolCalls[0]).toMatchObject({
      result: { code: 'LOUSHO_REMOTE_FAILED', error: expect.stringContaining('it was not said there') },
    });
    expect(asked).toEqual([]);
  });

  it('that cannot be stopped does not keep its lead from stopping', async () => {
    const stop = new AbortController();
    const { stopped, subagent } = scriptedRemote();
    const remote: RemoteAgent = {
      ...subagent.remote,
      work: () => (stop.abort(), new Promise(() => undefined)),
    };
    const agent = world.agent({ provider: mockModel([give]), subagents: [{ ...subagent, remote }] });
    const result = await agent.send('go', { sessionId, signal: stop.signal });
    expect(result).toMatchObject({ finishReason: 'aborted', toolCalls: [{ kind: 'cancelled' }] });
    expect(stopped).toHaveLength(1);
  });
});
