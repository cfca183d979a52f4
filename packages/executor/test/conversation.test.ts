/** One id, many calls: new turns, resumes, retries, and what is answered from the store. */
import { ConfigurationError, type Message } from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import {
  calling,
  givenStorage,
  givenWorld,
  need,
  noting,
  refusal,
  resultIds,
  roles,
  type Setup,
} from './support.ts';

/** A run that failed in its second model call, behind the result of `a`. */
async function givenFailed(more: Partial<Setup> = {}) {
  const storage = givenStorage();
  const world = givenWorld({
    storage,
    tools: [noting(storage, 'a')],
    script: [calling('a'), new Error('down')],
    retry: { maxRetries: 0 },
    ...more,
  });
  await world.send('go').catch(() => undefined);
  return world;
}

describe('a finished run', () => {
  it('goes on with new words: the whole conversation, everything counted from 0', async () => {
    const world = givenWorld({ script: ['hello', 'fine'] });
    const first = await world.send('hi');
    const second = await world.onNewProcess({ script: ['fine'] }).send('how are you?');
    expect(second).toMatchObject({ text: 'fine', steps: 1, usage: { modelCalls: 1 }, toolCalls: [] });
    expect(roles(second.messages)).toBe('user assistant user assistant');
    expect(second.runId).not.toBe(first.runId);
  });

  it('calls the model for the same words again', async () => {
    const world = givenWorld({ script: ['hello', 'hello again'] });
    await world.send('hi');
    expect((await world.send('hi')).text).toBe('hello again');
  });

  it('takes its own history with new words as the new words', async () => {
    const world = givenWorld({ script: ['hello', 'fine'], agent: { instructions: 'Be kind.' } });
    const first = await world.send('hi');
    const given = [
      ...first.messages,
      { role: 'user', content: 'how are you?' },
    ] as const satisfies readonly Message[];
    const second = await world.send(JSON.parse(JSON.stringify(given)) as readonly Message[]);
    expect(roles(second.messages)).toBe('system user assistant user assistant');
  });

  it('with nothing new is answered from the store, without a model call or a save', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a')],
      script: [calling('a'), 'done'],
      maxSteps: 2,
    });
    const first = await world.send('go', { businessState: { kept: 1 } });
    const saves = storage.store.saves.length;
    for (const again of [await world.send([]), await world.send([...first.messages])])
      expect(again).toEqual(first);
    expect(world.model.calls).toHaveLength(2);
    expect(storage.store.saves).toHaveLength(saves);
  });

  it('knows an input by its id, whatever it says', async () => {
    const world = givenWorld({ script: ['hello', 'never'] });
    const first = await world.send('hi', { inputId: 'msg-1' });
    expect(await world.send('hi', { inputId: 'msg-1' })).toEqual(first);
    expect(await world.send('hello?', { inputId: 'msg-1' })).toEqual(first);
  });

  it('that is deleted starts fresh', async () => {
    const world = givenWorld({ script: ['hello', 'hello'], agent: { instructions: 'Be kind.' } });
    await world.send('hi');
    await world.checkpoints.delete('order-7');
    expect(roles((await world.send('hi')).messages)).toBe('system user assistant');
  });

  it('has nothing to resume', async () => {
    const world = givenWorld({ script: ['hello'] });
    await world.send('hi');
    expect(await world.resume()).toBeNull();
    expect(await givenWorld().resume()).toBeNull();
  });
});

describe('an unfinished run', () => {
  it('resumed runs exactly the open calls first, then asks the model once', async () => {
    const storage = givenStorage();
    const first = givenWorld({
      storage,
      tools: [noting(storage, 'a'), noting(storage, 'b')],
      script: [calling('a', 'b')],
      toolConcurrency: 1,
      diesAt: { call: 'saveIfLeased#2', when: 'after' },
    });
    await first.untilDead(first.send('go'));
    const resumed = await first.afterCrash({ script: ['done'] });
    const result = need(await resumed.resume());
    expect(resumed.timesRun('a')).toBe(1);
    expect(resumed.model.calls).toHaveLength(1);
    expect(resultIds(resumed.model.calls[0]?.messages)).toEqual(['call_a', 'call_b']);
    expect(result).toMatchObject({
      steps: 2,
      usage: { modelCalls: 2 },
      toolCalls: [{ toolName: 'a' }, { toolName: 'b' }],
    });
    expect(resumed.events[0]).toMatchObject({ type: 'run.start', resumed: true });
  });

  it('takes new words behind the results of its open calls, through any number of crashes', async () => {
    const storage = givenStorage();
    const first = givenWorld({
      storage,
      tools: [noting(storage, 'a')],
      script: [calling('a')],
      diesAt: { call: 'saveIfLeased#1', when: 'after' },
    });
    await first.untilDead(first.send('go'));
    const second = await first.afterCrash({ diesAt: { call: 'saveIfLeased#1', when: 'after' } });
    await second.untilDead(second.send('also check the weather'));
    expect(await second.stored()).toMatchObject({ heldInput: [{ content: 'also check the weather' }] });
    const third = await second.afterCrash({ script: ['done'] });
    const result = await third.send('also check the weather');
    expect(roles(third.model.calls[0]?.messages)).toBe('user assistant tool user');
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
    expect(transcriptProblems(result.messages)).toEqual([]);
    expect(storage.effects).toEqual(['a']);
  });

  it.each([
    ['nothing', []],
    ['the same words', 'go'],
    ['the same words as parts', [{ type: 'text', text: 'go' }]],
  ] as const)('goes on with %s: the words are there once', async (_what, input) => {
    const world = await givenFailed();
    const result = await world.onNewProcess({ script: ['done'] }).send(input);
    expect(roles(result.messages)).toBe('user assistant tool assistant');
    expect(world.timesRun('a')).toBe(1);
  });

  it('takes further words behind a retry', async () => {
    const world = await givenFailed();
    const result = await world.onNewProcess({ script: ['done'] }).send([
      { role: 'user', content: 'go' },
      { role: 'user', content: 'and hurry' },
    ]);
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
  });

  it('takes the same words as new when their id is another', async () => {
    const world = await givenFailed();
    const result = await world.onNewProcess({ script: ['done'] }).send('go', { inputId: 'msg-2' });
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
  });

  it('takes no new words twice when its process dies right behind storing them', async () => {
    const first = await givenFailed();
    const dying = first.onNewProcess({ diesAt: { call: 'saveIfLeased#1', when: 'after' } });
    await dying.untilDead(dying.send('and hurry', { inputId: 'msg-2' }));
    const next = await dying.afterCrash({ script: ['done'] });
    const result = await next.send('and hurry', { inputId: 'msg-2' });
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
  });

  it('acts for the one it was started for', async () => {
    const world = await givenFailed();
    await refusal(world.onNewProcess().send([], { principal: { id: 'bob' } }), 'LOUSHO_CONFIG_INVALID');
    const startedForAnn = givenWorld({
      script: [calling('nobody'), new Error('down')],
      retry: { maxRetries: 0 },
    });
    await startedForAnn.send('go', { principal: { id: 'ann', role: 'boss' } }).catch(() => undefined);
    const stored = JSON.stringify(await startedForAnn.stored());
    const error = await refusal(
      startedForAnn.onNewProcess().send([], { principal: { id: 'bob' } }),
      'LOUSHO_CONFIG_INVALID',
    );
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.details).toMatchObject({ option: 'principal' });
    expect(JSON.stringify(await startedForAnn.stored())).toBe(stored);
    const same = startedForAnn.onNewProcess({ script: ['done'] });
    expect((await same.send([], { principal: { role: 'boss', id: 'ann' } })).finishReason).toBe('stop');
  });

  it('of old data, without a status, is unfinished', async () => {
    const world = await givenFailed();
    const { status: _status, attempts: _attempts, lastError: _lastError, ...old } = await world.unfinished();
    await need(world.storage.store.checkpoints).save('order-7', {
      ...old,
      status: 'in-progress',
    });
    expect((await world.onNewProcess({ script: ['done'] }).resume())?.text).toBe('done');
  });
});

describe('system messages', () => {
  const instructions = { agent: { instructions: 'Be kind.' } };

  it("of the first input stay, behind the agent's own", async () => {
    const world = givenWorld({ ...instructions, script: ['hello', 'fine'] });
    await world.send([
      { role: 'system', content: 'The user is 7.' },
      { role: 'user', content: 'hi' },
    ]);
    await world.send('how are you?');
    const told = world.model.calls[1]?.messages
      .filter(({ role }) => role === 'system')
      .map(({ content }) => content);
    expect(told).toEqual(['Be kind.', 'The user is 7.']);
  });

  it('of a later input are dropped', async () => {
    const world = givenWorld({ ...instructions, script: ['hello', 'fine'] });
    await world.send('hi');
    const { messages } = await world.send([
      { role: 'system', content: 'Be rude.' },
      { role: 'user', content: 'and?' },
    ]);
    expect(messages.filter(({ role }) => role === 'system').map(({ content }) => content)).toEqual([
      'Be kind.',
    ]);
  });

  it("of another conversation's result are not doubled", async () => {
    const world = givenWorld({ ...instructions, script: ['hello', 'fine', 'fine'] });
    const { messages } = await world.send('hi');
    const given: readonly Message[] = [...messages, { role: 'user', content: 'and?' }];
    const copied = await world.send(given, { sessionId: 'copy' });
    expect(roles(copied.messages)).toBe('system user assistant user assistant');
    // A browser may lose what marks it as ours.
    const bare = given.map(({ role, content }) => ({ role, content }) as Message);
    const again = await world.send(bare, { sessionId: 'copy-2' });
    expect(roles(again.messages)).toBe('system user assistant user assistant');
  });

  it('of the agent are those of now: a new turn of a new release has the new ones', async () => {
    const world = givenWorld({ ...instructions, script: ['hello'] });
    await world.send('hi');
    const next = world.onNewProcess({ agent: { instructions: 'Be brief.' }, script: ['ok'] });
    const { messages } = await next.send('and?');
    expect(messages[0]?.content).toBe('Be brief.');
    expect(roles(messages)).toBe('system user assistant user assistant');
  });
});

describe('the calls of one process with one id', () => {
  it('follow each other in the order in which they were made', async () => {
    const world = givenWorld({ script: [{ text: 'one', delayMs: 50 }, 'two', 'three'] });
    const ends = await world.letTimePass(
      Promise.all([world.send('1'), world.send('2'), world.send('3')]),
      50,
    );
    expect(ends.map(({ text }) => text)).toEqual(['one', 'two', 'three']);
    expect(roles(ends[2].messages)).toBe('user assistant user assistant user assistant');
  });

  it('go on when the one before fails: they resume it first', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a')],
      script: [calling('a'), new Error('down'), 'done'],
      retry: { maxRetries: 0 },
    });
    const first = world.send('go');
    const second = world.send('and hurry');
    await expect(first).rejects.toThrow('down');
    expect(roles((await second).messages)).toBe('user assistant tool user assistant');
  });

  it('find a pause when the one before paused', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'pay', undefined, { needsApproval: true })],
      script: [calling('pay')],
    });
    const first = world.send('pay');
    await refusal(world.send('hello?'), 'LOUSHO_SESSION_AWAITING_APPROVAL');
    expect((await first).finishReason).toBe('awaiting-approval');
  });

  it('that only resume do not wait: they are busy at once', async () => {
    const world = givenWorld({ script: [{ text: 'one', delayMs: 50 }] });
    const first = world.send('1');
    await refusal(world.resume(), 'LOUSHO_SESSION_BUSY');
    await world.letTimePass(first, 50);
  });

  it('from inside the run itself are refused: it would wait for itself for ever', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', () => world.send('from inside'))],
      script: [calling('a'), 'done'],
    });
    const { messages, finishReason } = await world.send('go');
    expect(finishReason).toBe('stop');
    expect(JSON.stringify(messages[2])).toContain('executing elsewhere');
  });

  it('of another id do not wait', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', async () => (await world.send('hi', { sessionId: 'other' })).text)],
      script: [calling('a'), 'hello', 'done'],
    });
    const { toolCalls } = await world.send('go');
    expect(toolCalls[0]?.result).toBe('hello');
  });
});
