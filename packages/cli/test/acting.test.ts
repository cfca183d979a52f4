/** Commands that decide and continue: once, by the agent of the configuration, and with an exit code for each end. */
import fs from 'node:fs';
import path from 'node:path';
import { createAgent, defineTool } from '@lousho/core';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { givenShop, waitingId, type ActingShop } from './support/acting-shop.ts';
import { storeKinds } from './support/stores.ts';

/** What nobody may see raw on a terminal. */
const HOSTILE = 'x\u001b[31m\u202e\n;rm.apr-aaaaaaaa-1-0';

describe.each(storeKinds)('on $name', (kind) => {
  it('approves once: the call runs, the run goes on, and a second decision changes nothing', async () => {
    const shop = await givenShop(kind);
    const id = await waitingId(shop);
    const first = await shop.run(['approvals', 'approve', id, '--by', 'ada']);
    expect(first).toMatchObject({ exitCode: 0, stdout: 'Charged.\n' });
    const second = await shop.run(['approvals', 'approve', id, '--by', 'bob']);
    expect(second).toMatchObject({ exitCode: 1, stdout: '' });
    expect(second.stderr).toMatch(/ada.*LOUSHO_APPROVAL_DECIDED/s);
    expect(await shop.run(['approvals', 'reject', id])).toMatchObject({ exitCode: 1 });
    expect(shop.effects()).toEqual(['charge_card {"cents":4200,"card":"visa"}']);
  });

  it('decides as a process of its own, and only one of two at a time does', async () => {
    const shop = await givenShop(kind);
    const id = await waitingId(shop);
    const args = ['approvals', 'approve', id, '--args', '{"cents":1}', '--json'];
    const ended = await Promise.all([shop.begin(args), shop.begin(args)]);
    const [winner, ...others] = ended.sort((a, b) => a.exitCode - b.exitCode);
    expect(JSON.parse(winner?.stdout ?? '')).toMatchObject({ sessionId: 'order-7', text: 'Charged.' });
    // The other one comes too late, or while the first one is at it.
    expect(others.map(({ exitCode, stdout }) => [[1, 5].includes(exitCode), stdout])).toEqual([[true, '']]);
    expect(shop.effects()).toEqual(['charge_card {"cents":1}']);
  });

  it('rejects with a note that the model reads', async () => {
    const shop = await givenShop(kind);
    const args = ['approvals', 'reject', await waitingId(shop), '--note', 'too much'];
    expect(await shop.run(args)).toMatchObject({ exitCode: 0, stdout: 'Charged.\n' });
    expect(shop.effects()).toEqual([]);
    expect(JSON.stringify(await stored(shop, 'order-7'))).toContain('too much');
  });

  it('takes arguments from a file, and refuses what does not fit, before anything is decided', async () => {
    const shop = await givenShop(kind);
    const id = await waitingId(shop);
    fs.writeFileSync(path.join(shop.folder, 'args.json'), '{"cents": 7}');
    fs.writeFileSync(path.join(shop.folder, 'broken.json'), '{');
    for (const wrong of ['{', '@broken.json', '@missing.json'])
      expect(await shop.run(['approvals', 'approve', id, '--args', wrong])).toMatchObject({ exitCode: 2 });
    expect(await shop.run(['approvals', 'approve', id, '--answer', 'yes'])).toMatchObject({ exitCode: 2 });
    expect(await shop.run(['approvals', 'approve', id, '--args', '@args.json'])).toMatchObject({
      exitCode: 0,
    });
    expect(shop.effects()).toEqual(['charge_card {"cents":7}']);
  });

  it('ends with 4 while other decisions are open, and runs nothing before the last', async () => {
    const shop = await givenShop(kind);
    await waitOnTwo(shop);
    const first = await shop.run(['approvals', 'approve', await waitingId(shop, 'both')]);
    expect(first.exitCode).toBe(4);
    const second = await waitingId(shop, 'both');
    expect(first.stderr).toContain(`lousho approvals approve ${second}`);
    expect(shop.effects()).toEqual([]);
    expect(await shop.run(['approvals', 'approve', second])).toMatchObject({ exitCode: 0 });
    expect(shop.effects()).toHaveLength(2);
  });

  it('answers a question, and says that one is needed', async () => {
    const shop = await givenShop(kind);
    const store = kind.open(shop.folder);
    const ask = { toolCalls: [{ name: 'ask_question', args: { question: 'Which colour?' } }] };
    await createAgent({ name: 'asker', provider: mockModel([ask]), askQuestion: true, store }).send('Go', {
      sessionId: 'asked',
    });
    await store.close?.();
    const id = await waitingId(shop, 'asked');
    expect(await shop.run(['approvals', 'approve', id])).toMatchObject({ exitCode: 2 });
    expect(await shop.run(['approvals', 'approve', id, '--answer', 'blue'])).toMatchObject({ exitCode: 0 });
    expect(JSON.stringify(await stored(shop, 'asked'))).toContain('blue');
  });

  it('resumes what failed, once, and says when there is nothing to resume', async () => {
    const shop = await givenShop(kind);
    expect(shop.start(['resume', 'order-8'])).toMatchObject({ exitCode: 0, stdout: 'Shipped.\n' });
    const again = await shop.run(['resume', 'order-8']);
    expect(again).toMatchObject({ exitCode: 0, stdout: '' });
    expect(again.stderr).toContain('finished');
    expect(shop.effects()).toEqual(['ship {"order":8}']);
    expect(await shop.run(['resume', 'order-7'])).toMatchObject({ exitCode: 4 });
  });

  it('does not touch what another process executes: exit code 5', async () => {
    const shop = await givenShop(kind);
    const id = await waitingId(shop);
    const held = kind.open(shop.folder);
    for (const run of ['order-7', 'order-8']) await held.checkpoints?.acquireLease?.(run, 'somebody', 60_000);
    expect((await shop.run(['resume', 'order-8'])).exitCode).toBe(5);
    expect((await shop.run(['approvals', 'approve', id])).exitCode).toBe(5);
    expect((await shop.run(['discard', 'order-8', '--yes'])).exitCode).toBe(5);
    expect((await shop.run(['recover', '--once'])).exitCode).toBe(0);
    await held.close?.();
    expect(shop.effects()).toEqual([]);
    expect(await stored(shop, 'order-8')).toMatchObject({ status: 'in-progress' });
  });

  it('recovers once, tells each run as a line of JSON, and leaves what waits for a person', async () => {
    const shop = await givenShop(kind);
    const { exitCode, stdout } = shop.start(['recover', '--once', '--json']);
    expect(exitCode).toBe(0);
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(events).toMatchObject([{ type: 'recovered', sessionId: 'order-8', text: 'Shipped.' }]);
    expect((await shop.run(['recover', '--once'])).stdout).toBe('');
    expect(shop.effects()).toEqual(['ship {"order":8}']);
  });

  it('says that an id is unknown or malformed, and shows it harmless', async () => {
    const shop = await givenShop(kind);
    const calls = [
      ['approvals', 'approve'],
      ['approvals', 'reject'],
      ['resume'],
      ['discard', '--yes'],
      ['fork', '--from-step', '1'],
      ['export', '--fixture'],
    ];
    for (const call of calls)
      for (const id of ['unknown', HOSTILE]) {
        const { exitCode, stdout, stderr } = await shop.run([...call, id]);
        expect([2, 3], `${call.join(' ')} ${id}`).toContain(exitCode);
        expect(stdout).toBe('');
        expect(stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
      }
    expect(shop.effects()).toEqual([]);
  });
});

it('decides for a run that is stored with its approval alone', async () => {
  const [kind] = storeKinds;
  if (kind === undefined) throw new Error('no store');
  const shop = await givenShop(kind);
  const store = kind.open(shop.folder);
  const provider = mockModel([{ toolCalls: [{ name: 'charge_card', args: { cents: 3 } }] }]);
  const inboxAlone = { ...(store.approvals && { approvals: store.approvals }) };
  const paused = await createAgent({ name: 'shop', provider, tools: [charge], store: inboxAlone }).send('Go');
  await store.close?.();
  const id = paused.approvalId ?? '';
  expect((await shop.run(['approvals', 'approve', id])).exitCode).toBe(0);
  expect((await shop.run(['approvals', 'approve', id])).exitCode).toBe(3);
  expect(shop.effects()).toEqual(['charge_card {"cents":3}']);
});

it('decides by the run, also when nothing of it is in the inbox any more', async () => {
  const [kind] = storeKinds;
  if (kind === undefined) throw new Error('no store');
  const shop = await givenShop(kind);
  const id = await waitingId(shop);
  const store = kind.open(shop.folder);
  await store.approvals?.delete(id);
  await store.close?.();
  expect(await shop.run(['approvals', 'approve', id])).toMatchObject({ exitCode: 0, stdout: 'Charged.\n' });
  expect(shop.effects()).toHaveLength(1);
});

it('needs the agent of the configuration to continue a run, and says so', async () => {
  const [kind] = storeKinds;
  if (kind === undefined) throw new Error('no store');
  const shop = await givenShop(kind);
  const id = await waitingId(shop);
  fs.rmSync(path.join(shop.folder, 'lousho.config.ts'));
  for (const call of [
    ['approvals', 'approve', id],
    ['resume', 'order-8'],
    ['recover', '--once'],
  ]) {
    const { exitCode, stderr } = await shop.run([...call, '--store', kind.spec]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('needs the agent');
  }
});

it('refuses an agent that works on another store than the one that was looked into', async () => {
  const [kind] = storeKinds;
  if (kind === undefined) throw new Error('no store');
  const [shop, other] = [await givenShop(kind), await givenShop(kind)];
  const store = `sqlite:${path.join(other.folder, 'runs.db')}`;
  // A run that both have, and one that only the other has.
  for (const call of [
    ['approvals', 'approve', await waitingId(other)],
    ['resume', 'order-8'],
  ]) {
    expect(await shop.run([...call, '--store', store])).toMatchObject({ exitCode: 2 });
  }
  expect([shop.effects(), other.effects()]).toEqual([[], []]);
});

/** Only asked for here: the process that decides has its own. */
const charge = defineTool({
  name: 'charge_card',
  description: 'charge_card',
  input: { type: 'object' },
  needsApproval: true,
  execute: async () => null,
});

async function stored({ kind, folder }: ActingShop, id: string) {
  const store = kind.open(folder);
  const checkpoint = await store.checkpoints?.load(id);
  await store.close?.();
  return checkpoint;
}

async function waitOnTwo({ kind, folder }: ActingShop): Promise<void> {
  const store = kind.open(folder);
  const call = { name: 'charge_card', args: { cents: 1 } };
  const provider = mockModel([{ toolCalls: [call, call] }]);
  await createAgent({ name: 'shop', provider, tools: [charge], store }).send('Go', { sessionId: 'both' });
  await store.close?.();
}
