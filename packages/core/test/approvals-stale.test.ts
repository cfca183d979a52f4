/** An approval whose run is gone or moved on, or whose time is over, runs nothing. */
import type { Checkpoint } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { crashingStore } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { refusal, resultOfCall } from './support/read.ts';
import { emailTool } from './support/tools.ts';
import { until } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';
import { askForEmail, givenPausedOnEmail } from './support/paused-email.ts';

onEveryStore('a stale approval', (world) => {
  async function givenOrphan(forget: (stored: Checkpoint) => Promise<unknown>) {
    const given = await givenPausedOnEmail(world, 'never asked');
    await forget((await world.stored('chat-42')) as Checkpoint);
    return given;
  }

  it('is orphaned when its run was deleted: nothing runs, and it is gone from the list', async () => {
    const { email, agent, id } = await givenOrphan(() => world.checkpoints.delete('chat-42'));
    expect(await agent.approvals.list()).toEqual([]);
    expect(await agent.approvals.get(id)).toBeUndefined();
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(email.runs).toEqual([]);
    expect(await world.store.approvals.load(id)).toBeNull();
  });

  it('is orphaned when a newer run took the id, and leaves that run alone', async () => {
    const { email, agent, id } = await givenOrphan(() => world.checkpoints.delete('chat-42'));
    const newer = world.agent({ provider: mockModel([askForEmail]), tools: [email.tool] });
    const paused = await newer.send('another one', { sessionId: 'chat-42' });
    const before = await world.stored('chat-42');
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(await world.stored('chat-42')).toEqual(before);
    expect(await agent.approvals.list()).toMatchObject([{ id: paused.approvalId }]);
    expect(email.runs).toEqual([]);
  });

  it('is orphaned when what would run is not what the person saw', async () => {
    const { email, agent, id } = await givenOrphan(async (stored) => {
      const messages = stored.messages.map((message) =>
        message.role === 'assistant'
          ? {
              ...message,
              content: message.content.map((part) => ({ ...part, args: { to: 'mallory@example.com' } })),
            }
          : message,
      );
      await world.checkpoints.save('chat-42', { ...stored, messages: messages });
    });
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(email.runs).toEqual([]);
  });

  it('is none before its run waits on it: whoever is that early hears "busy", and its record stays', async () => {
    const email = emailTool();
    const tools = [email.tool];
    // The record is in the inbox, the mark not yet in the checkpoint.
    const dying = crashingStore(world.store, { point: { call: 'approvals.save#1', when: 'after' } });
    const first = world.agent({ store: dying.store, provider: mockModel([askForEmail]), tools });
    void first.send('email bob', { sessionId: 'chat-42' });
    await until(() => dying.isDead);
    const [record] = await world.store.approvals.list();
    const { id = '' } = record ?? {};
    const agent = world.agent({ provider: mockModel(['Sent.']), tools });
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_SESSION_BUSY');
    expect(await world.store.approvals.load(id)).toEqual(record);
    expect(await agent.approvals.list()).toEqual([]);
    await world.clock.advance(60_001);
    expect(await agent.resume('chat-42')).toMatchObject({ approvalIds: [id] });
    expect(await agent.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'Sent.' });
    expect(email.runs).toHaveLength(1);
  });

  it.each(['nonsense', '', 'chat-42', '../../etc/passwd', 'chat-42.apr-00000000-1-0x'])(
    'never was one: %j',
    async (id) => {
      const { agent } = await givenPausedOnEmail(world);
      await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_NOT_FOUND');
      await refusal(
        agent.approvals.streamResolve({ id, approved: true }).result,
        'LOUSHO_APPROVAL_NOT_FOUND',
      );
      expect(await agent.approvals.get(id)).toBeUndefined();
      expect(await agent.approvals.list()).toHaveLength(1);
    },
  );
});

onEveryStore('an approval that expires', (world) => {
  async function givenPausedWithTtl(approvalTtlMs: number | undefined, agentTtlMs?: number) {
    const email = emailTool();
    const model = mockModel([askForEmail, 'Too late.']);
    const agent = world.agent({ provider: model, tools: [email.tool], approvalTtlMs: agentTtlMs });
    const paused = await agent.send('email bob', { sessionId: 'chat-42', approvalTtlMs });
    return { email, agent, id: paused.approvalId ?? '' };
  }

  it('runs when it is decided in time', async () => {
    const { email, agent, id } = await givenPausedWithTtl(60_000);
    const [request] = await agent.approvals.list();
    expect(Date.parse(request?.expiresAt ?? '') - Date.parse(request?.createdAt ?? '')).toBe(60_000);
    await world.clock.advance(59_999);
    await agent.approvals.resolve({ id, approved: true });
    expect(email.runs).toHaveLength(1);
  });

  it('is denied when it is decided too late, whatever was said', async () => {
    const { email, agent, id } = await givenPausedWithTtl(60_000);
    await world.clock.advance(60_000);
    const result = await agent.approvals.resolve({ id, approved: true });
    expect(email.runs).toEqual([]);
    expect(result.text).toBe('Too late.');
    expect(resultOfCall(result.messages, 'call_email')).toMatchObject({
      kind: 'denied',
      result: { error: expect.stringContaining('expired') },
      approval: { approved: false, source: 'expiry' },
    });
  });

  it('is denied when it is decided too late, also where a deploy has taken its tool away', async () => {
    const { id } = await givenPausedWithTtl(60_000);
    const deployed = world
      .otherProcess()
      .agent({ provider: mockModel(['Too late.']), onAgentDrift: 'ignore' });
    await refusal(deployed.approvals.resolve({ id, approved: true }), 'LOUSHO_RESUME_TOOL_MISSING');
    await world.clock.advance(60_000);
    const result = await deployed.approvals.resolve({ id, approved: true });
    expect(resultOfCall(result.messages, 'call_email')).toMatchObject({ kind: 'denied' });
  });

  it('takes the time of the call over that of the agent, and has none without either', async () => {
    await givenPausedWithTtl(30_000, 60_000);
    const stored = await world.stored('chat-42');
    const { createdAt = '', expiresAt = '' } = stored?.approvals[0] ?? {};
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(30_000);
    await world.checkpoints.delete('chat-42');
    const { agent } = await givenPausedWithTtl(undefined);
    expect((await agent.approvals.list())[0]).not.toHaveProperty('expiresAt');
  });
});
