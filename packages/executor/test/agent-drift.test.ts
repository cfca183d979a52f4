import { defineTool, type AgentFingerprint, type Checkpoint, type DriftPolicy } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { afterEach, beforeEach, describe, expect, it, vi, type MockInstance } from 'vitest';
import { z } from 'zod';
import { compareAgents, heededDrift, resolveDriftPolicy } from '../src/agent-drift.ts';
import { fingerprintOf } from '../src/agent-fingerprint.ts';
import { checkAgent } from '../src/check-agent.ts';
import { refreshedMessages } from '../src/instructions.ts';
import { resolveAgent } from '../src/resolved-agent.ts';
import { approvalOf, assistant, call, inProgress, no, system, tool, user, yes } from './checkpoints.ts';
import { calling, givenStorage, givenWorld, need, noting, refusal, roles } from './support.ts';

const schema = { type: 'object', properties: { to: { type: 'string' }, subject: { type: 'string' } } };
const named = (name: string, inputSchema: object = schema) => ({
  name,
  description: name,
  inputSchema: inputSchema as never,
});
const base = { model: 'mock', tools: [named('mail'), named('pay')], instructions: 'Be kind.' };

describe('what an agent is recognised by', () => {
  it('is 16 hex characters over model, tool inputs and instructions', async () => {
    const fingerprint = await fingerprintOf(base);
    expect(fingerprint).toMatchObject({ version: 1, model: 'mock' });
    for (const hash of [fingerprint.hash, fingerprint.instructions, ...Object.values(fingerprint.tools)])
      expect(hash).toMatch(/^[0-9a-f]{16}$/);
  });
  it('stays the same from release to release', async () => {
    // Stored runs are compared with it: a change of these needs a new fingerprint version.
    expect(await fingerprintOf(base)).toMatchInlineSnapshot(`
      {
        "hash": "b005a771fd04137d",
        "instructions": "5499befb38dbf3fc",
        "model": "mock",
        "tools": {
          "mail": "b32df8139fd0a67b",
          "pay": "b32df8139fd0a67b",
        },
        "version": 1,
      }
    `);
  });
  it.each([
    ['the order of tools', { ...base, tools: [named('pay'), named('mail')] }],
    [
      'the order of keys in a schema',
      { ...base, tools: [named('mail', reversedKeys(schema)), named('pay')] },
    ],
    [
      'what a tool is described as',
      { ...base, tools: [{ ...named('mail'), description: 'Sends.' }, named('pay')] },
    ],
  ])('does not depend on %s', async (_what, other) => {
    expect(await fingerprintOf(other)).toEqual(await fingerprintOf(base));
  });
  it.each([
    ['model', { ...base, model: 'mock-2' }],
    ['instructions', { ...base, instructions: 'Be brief.' }],
    ['set of tools', { ...base, tools: [named('mail')] }],
    ['input of a tool', { ...base, tools: [named('mail', { type: 'object' }), named('pay')] }],
    ['name of a tool', { ...base, tools: [named('mail'), named('charge')] }],
  ])('is another with another %s', async (_what, other) => {
    expect((await fingerprintOf(other)).hash).not.toBe((await fingerprintOf(base)).hash);
  });
  it('holds for a tool named __proto__ too', async () => {
    const fingerprint = await fingerprintOf({ ...base, tools: [named('__proto__')] });
    expect(Object.keys(fingerprint.tools)).toEqual(['__proto__']);
  });
});

describe('the difference', () => {
  const saved: AgentFingerprint = {
    version: 1,
    hash: 'a',
    model: 'mock',
    tools: { mail: '1', pay: '2', gone: '3' },
    instructions: '4',
  };
  it('names what was added, removed and changed', () => {
    const now = {
      version: 1,
      hash: 'b',
      model: 'mock-2',
      tools: { mail: '1', pay: '9', extra: '5' },
      instructions: '6',
    };
    expect(compareAgents(saved, now)).toEqual({
      model: { saved: 'mock', current: 'mock-2' },
      toolsAdded: ['extra'],
      toolsRemoved: ['gone'],
      toolsChanged: ['pay'],
      instructions: true,
    });
  });
  it.each([
    ['nothing is saved', undefined, saved],
    ['nothing differs', saved, saved],
    ['the way of hashing changed', saved, { ...saved, version: 2, hash: 'b' }],
  ])('is none when %s', (_when, before, now) => {
    expect(compareAgents(before, now)).toBeUndefined();
  });
});

describe('the tools of open calls', () => {
  const agent = resolveAgent({ name: 'agent', provider: mockModel([]), tools: [] });
  const messages = [user('go'), assistant('', call('a'))];
  const check = (stored: Checkpoint, rejectedId?: string, policy: DriftPolicy = 'ignore') =>
    checkAgent({
      stored,
      agent,
      sessionId: 'order-7',
      policy: resolveDriftPolicy(policy),
      rejectedIds: new Set(rejectedId === undefined ? [] : [rejectedId]),
    });

  it.each<readonly [string, Checkpoint]>([
    ['a call that never ran', inProgress({ messages })],
    ['an approved call', inProgress({ messages, approvals: [approvalOf('a', { decision: yes })] })],
    ['a call that waits for a person', inProgress({ messages, approvals: [approvalOf('a')] })],
  ])('must be there for %s, whatever the policy says', async (_what, stored) => {
    const error = await refusal(check(stored), 'LOUSHO_RESUME_TOOL_MISSING');
    expect(error.details).toEqual({ sessionId: 'order-7', toolName: 'a', toolCallId: 'a' });
  });
  it.each<readonly [string, Checkpoint, string | undefined]>([
    ['a call with a result', inProgress({ messages: [...messages, tool('a')] }), undefined],
    ['a rejected call', inProgress({ messages, approvals: [approvalOf('a', { decision: no })] }), undefined],
    [
      'a call that is being rejected',
      inProgress({ messages, approvals: [approvalOf('a')] }),
      approvalOf('a').id,
    ],
  ])('need not be there for %s', async (_what, stored, rejectedId) => {
    expect(await check(stored, rejectedId)).toBeUndefined();
  });
});

describe('instructions on a resume', () => {
  const agentWith = (instructions: string | undefined) =>
    resolveAgent({ name: 'agent', provider: mockModel([]), tools: [], instructions });
  const ours = refreshedMessages([user('go')], agentWith('Be kind.'));

  it('stand at the head, once', () => {
    expect(roles(ours)).toBe('system user');
    expect(refreshedMessages(ours, agentWith('Be kind.'))).toBe(ours);
  });
  it('are those of the agent of now', () => {
    expect(refreshedMessages(ours, agentWith('Be brief.')).map(({ content }) => content)).toEqual([
      'Be brief.',
      'go',
    ]);
    expect(roles(refreshedMessages(ours, agentWith(undefined)))).toBe('user');
    expect(roles(refreshedMessages(ours, agentWith('')))).toBe('user');
  });
  it('leave system messages of the input where they are', () => {
    const given = refreshedMessages([system('From the input.'), user('go')], agentWith('Be kind.'));
    expect(given.map(({ content }) => content)).toEqual(['Be kind.', 'From the input.', 'go']);
    expect(refreshedMessages(given, agentWith(undefined)).map(({ content }) => content)).toEqual([
      'From the input.',
      'go',
    ]);
  });
});

describe('a run that another agent resumes', () => {
  let warn: MockInstance<typeof console.warn>;
  beforeEach(() => {
    warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  });
  afterEach(() => warn.mockRestore());

  /** Failed at the second model call, so that its next resume only asks the model. */
  async function givenFailedRun() {
    const storage = givenStorage();
    const mail = noting(storage, 'mail');
    const world = givenWorld({
      storage,
      tools: [mail],
      agent: { instructions: 'Be kind.' },
      script: [calling('mail'), new Error('down')],
      retry: { maxRetries: 0 },
    });
    await world.send('go').catch(() => undefined);
    return world;
  }

  it('goes on with one warning and one event that name the difference', async () => {
    const world = (await givenFailedRun()).onNewProcess({
      script: ['done'],
      agent: { instructions: 'Be brief.' },
    });
    const finished = await world.resume();
    expect(finished?.text).toBe('done');
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[0]).toContain('instructions changed');
    const drifts = world.events.filter(({ type }) => type === 'agent.drift');
    expect(drifts).toMatchObject([{ instructions: true, toolsAdded: [] }]);
    expect(world.eventTypes().slice(0, 2)).toEqual(['run.start', 'agent.drift']);
    expect(world.model.calls[0]?.messages[0]?.content).toBe('Be brief.');
  });

  it('is warned of once: the next resume is the same agent again', async () => {
    const world = (await givenFailedRun()).onNewProcess({
      script: [new Error('down again')],
      agent: { instructions: 'Be brief.' },
    });
    await world.resume().catch(() => undefined);
    await world.onNewProcess({ script: ['done'] }).resume();
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('is refused with the policy "error", and nothing changed', async () => {
    const before = await givenFailedRun();
    const stored = JSON.stringify(await before.stored());
    const world = before.onNewProcess({ script: ['done'], tools: [], onAgentDrift: 'error' });
    const error = await refusal(world.resume(), 'LOUSHO_AGENT_DRIFT');
    expect(error.details).toMatchObject({ drift: { toolsRemoved: ['mail'] } });
    expect(world.model.calls).toEqual([]);
    expect(JSON.stringify(await world.stored())).toBe(stored);
    expect(warn).not.toHaveBeenCalled();
  });

  it('is not looked at with the policy "ignore"', async () => {
    const world = (await givenFailedRun()).onNewProcess({
      script: ['done'],
      tools: [],
      onAgentDrift: 'ignore',
    });
    expect((await world.resume())?.finishReason).toBe('stop');
    expect(warn).not.toHaveBeenCalled();
    expect(world.eventTypes()).not.toContain('agent.drift');
  });

  it('of old data without a fingerprint goes on silently', async () => {
    const before = await givenFailedRun();
    const { fingerprint: _fingerprint, ...old } = need(await before.stored());
    await before.checkpoints.save('order-7', old);
    const world = before.onNewProcess({ script: ['done'], tools: [], onAgentDrift: 'error' });
    expect((await world.resume())?.finishReason).toBe('stop');
  });

  it('has its tool called the same when only its code changed', async () => {
    const before = await givenFailedRun();
    const world = before.onNewProcess({
      script: ['done'],
      tools: [noting(before.storage, 'mail', () => 'other code')],
    });
    await world.resume();
    expect(warn).not.toHaveBeenCalled();
  });

  it('whose tool is missing changes nothing, and finishes with the agent that has it', async () => {
    const storage = givenStorage();
    const first = givenWorld({
      storage,
      tools: [noting(storage, 'mail')],
      script: [calling('mail')],
      diesAt: { call: 'saveIfLeased#1', when: 'after' },
    });
    await first.untilDead(first.send('go'));
    const without = await first.afterCrash({ tools: [] });
    const stored = JSON.stringify(await without.stored());
    await refusal(without.resume(), 'LOUSHO_RESUME_TOOL_MISSING');
    expect(JSON.stringify(await without.stored())).toBe(stored);
    const finished = await first.onNewProcess({ script: ['sent'] }).resume();
    expect(finished).toMatchObject({ finishReason: 'stop', text: 'sent' });
  });
});

it('a tool schema hashes the same, whatever order its keys were written in', async () => {
  const one = defineTool({
    name: 't',
    description: '',
    input: z.object({ a: z.string(), b: z.number() }),
    execute: () => 1,
  });
  const other = defineTool({
    name: 't',
    description: '',
    input: z.object({ b: z.number(), a: z.string() }),
    execute: () => 2,
  });
  const hashOf = async (defined: { readonly inputSchema: object }) =>
    (await fingerprintOf({ ...base, tools: [named('t', { ...defined.inputSchema, required: [] })] })).hash;
  expect(await hashOf(one)).toBe(await hashOf(other));
});

function reversedKeys(value: object): object {
  return Object.fromEntries(Object.entries(value).reverse());
}

describe('a policy for each part', () => {
  const drift = {
    model: { saved: 'a', current: 'b' },
    toolsAdded: ['mail'],
    toolsRemoved: [],
    toolsChanged: [],
    instructions: true,
  };
  it('refuses when one of the parts that differ is to be refused', () => {
    expect(heededDrift(drift, resolveDriftPolicy({ tools: 'error' }))).toEqual({ drift, isRefused: true });
  });
  it('warns of a part that is not named', () => {
    expect(heededDrift(drift, resolveDriftPolicy({}))).toEqual({ drift, isRefused: false });
  });
  it('leaves out what is to be ignored, also when something else is reported', () => {
    const policy = resolveDriftPolicy({ model: 'ignore', tools: 'ignore', instructions: 'warn' });
    expect(heededDrift(drift, policy)).toEqual({
      drift: { toolsAdded: [], toolsRemoved: [], toolsChanged: [], instructions: true },
      isRefused: false,
    });
  });
  it('says nothing when all that differs is to be ignored, whatever the other parts would get', () => {
    const onlyModel = { ...drift, toolsAdded: [], instructions: false };
    const policy = resolveDriftPolicy({ model: 'ignore', tools: 'error', instructions: 'error' });
    expect(heededDrift(onlyModel, policy)).toBeUndefined();
  });
});
