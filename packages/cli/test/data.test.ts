/** Commands that move, compare and remove what is stored: nothing is lost, nothing is destroyed unasked. */
import fs from 'node:fs';
import path from 'node:path';
import { compareTrajectories, createAgent } from '@lousho/core';
import type { AgentStore } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import type { Fixture } from '../src/fixture.ts';
import { givenShop, waitingId, type ActingShop } from './support/acting-shop.ts';
import { loushoOnTerminal, noPtyReason } from './support/pty.ts';
import { newFolder, storeKinds, type StoreKind } from './support/stores.ts';

const [sqlite, file] = storeKinds as [StoreKind, StoreKind];
const other = (kind: StoreKind): StoreKind => (kind === sqlite ? file : sqlite);

describe.each(storeKinds)('on $name', (kind) => {
  it('forks a run at a step, with another result, and leaves the old one as it is', async () => {
    const shop = await givenShop(kind);
    const before = await inStore(shop, contentOf);
    fs.writeFileSync(path.join(shop.folder, 'result.json'), '{"order":7,"items":[]}');
    const call = await inStore(shop, async (store) => {
      const run = await store.checkpoints?.load('order-9');
      return JSON.stringify(run?.messages).match(/"toolCallId":"([^"]+)"/)?.[1];
    });
    const args = ['fork', 'order-9', '--from-step', '1', '--tool-result', `${call}=@result.json`];
    const forked = await shop.run([...args, '--input', 'And now?']);
    expect(forked).toMatchObject({ exitCode: 0, stdout: 'order-9.fork-1\n' });
    expect((await shop.run(['fork', 'order-9', '--from-step', '99'])).exitCode).toBe(3);
    expect((await shop.run(['fork', 'order-9', '--from-step', '1', '--tool-result', 'x'])).exitCode).toBe(2);
    expect(shop.start(['resume', 'order-9.fork-1'])).toMatchObject({ exitCode: 0 });
    const after = await inStore(shop, contentOf);
    expect(after.runs['order-9']).toEqual(before.runs['order-9']);
    expect(JSON.stringify(after.runs['order-9.fork-1'])).toContain('And now?');
  });

  it('tells where two runs part, exits with 6 when they drift, and prints the drift as the library gives it', async () => {
    const shop = await givenShop(kind);
    const { stdout, exitCode } = shop.start(['eval', '--drift', 'order-7', 'order-9', '--json']);
    const [a, b] = await inStore(shop, async ({ checkpoints }) => [
      await checkpoints?.load('order-7'),
      await checkpoints?.load('order-9'),
    ]);
    if (!a || !b) throw new Error('no runs');
    expect(exitCode).toBe(6);
    expect(JSON.parse(stdout)).toEqual(compareTrajectories(a, b).drift);
    const whole = await shop.run(['diff', 'order-7', 'order-9', '--json']);
    expect(JSON.parse(whole.stdout)).toEqual(JSON.parse(JSON.stringify(compareTrajectories(a, b))));
    expect(whole.exitCode).toBe(6);
    const shown = await shop.run(['diff', 'order-7', 'order-9']);
    expect(shown.stdout).toMatch(/= step 1.*look_up.*≠ step 2.*charge_card/s);
    expect(await shop.run(['eval', '--drift', 'order-9', 'order-9', '--json'])).toMatchObject({
      exitCode: 0,
      stdout: '[]\n',
    });
    expect((await shop.run(['eval', 'order-9', 'order-9'])).exitCode).toBe(2);
    expect((await shop.run(['diff', 'order-9', 'nothing'])).exitCode).toBe(3);
  });

  it('exports a run as a fixture, with which a test replays it and sees that nothing drifts', async () => {
    const shop = await givenShop(kind);
    const args = ['export', '--fixture', 'order-9', '--out', 'order-9.json'];
    expect((await shop.run(args)).exitCode).toBe(0);
    const fixture = JSON.parse(fs.readFileSync(path.join(shop.folder, 'order-9.json'), 'utf8')) as Fixture;
    expect(fixture.input).toMatchObject([{ role: 'user', content: 'What is order 9?' }]);
    expect(fixture.script).toMatchObject([
      { toolCalls: [{ name: 'look_up' }] },
      { text: 'It is a book and a pen.' },
    ]);
    expect((await shop.run(['eval', '--drift', 'order-9.json', 'order-9'])).exitCode).toBe(0);
    expect((await shop.run(['eval', '--drift', './order-9.json', 'order-7'])).exitCode).toBe(6);
    // Written over only when that is meant.
    expect((await shop.run(args)).exitCode).toBe(2);
    expect((await shop.run([...args, '--yes'])).exitCode).toBe(0);
  });

  it('discards what is meant only, with its approvals, and nothing without --yes', async () => {
    const shop = await givenShop(kind);
    const approval = await waitingId(shop);
    expect((await shop.run(['discard', 'order-7'])).exitCode).toBe(2);
    expect((await inStore(shop, contentOf)).approvals).toHaveLength(1);
    expect(shop.start(['discard', 'order-7', '--yes', '--json'])).toMatchObject({ exitCode: 0 });
    const { runs, approvals } = await inStore(shop, contentOf);
    expect([Object.keys(runs).sort(), approvals]).toEqual([['order-8', 'order-9'], []]);
    expect((await shop.run(['approvals', 'approve', approval])).exitCode).toBe(3);
    expect((await shop.run(['discard', 'order-7', '--yes'])).exitCode).toBe(3);
    expect(shop.effects()).toEqual([]);
  });

  it('discards the unfinished turn of a session, and keeps what was said before', async () => {
    const shop = await givenShop(kind);
    await inStore(shop, async (store) => {
      const ask = { toolCalls: [{ name: 'ask_question', args: { question: 'Which?' } }] };
      const provider = mockModel(['Hello.', ask]);
      const session = createAgent({ provider, askQuestion: true, store }).session({ id: 'chat' });
      await session.send('Hi');
      await session.send('One more');
    });
    expect((await shop.run(['discard', 'chat', '--yes'])).exitCode).toBe(0);
    expect((await shop.run(['discard', 'chat', '--yes'])).exitCode).toBe(3);
    const session = await inStore(shop, async ({ sessions }) => sessions?.load('chat'));
    expect(JSON.stringify(session?.messages)).toContain('Hello.');
    expect((await shop.run(['fork', 'chat', '--from-step', '1'])).stdout).toBe('chat-fork-1\n');
  });

  it('prunes what is old and needed by nobody, says before how much that is, and asks', async () => {
    const shop = await givenShop(kind);
    const dry = await shop.run(['prune', '--older-than', '0s', '--dry-run', '--json']);
    expect(JSON.parse(dry.stdout)).toMatchObject({ checkpoints: 1, dryRun: true });
    const asked = await shop.run(['prune', '--older-than', '0s']);
    expect(asked.exitCode).toBe(2);
    expect(asked.stderr).toContain('Remove 1 run,');
    expect((await shop.run(['prune', '--older-than', '30d', '--yes'])).stderr).toContain('nothing');
    expect(Object.keys((await inStore(shop, contentOf)).runs)).toHaveLength(3);
    expect(shop.start(['prune', '--older-than', '0s', '--yes']).stdout).toMatch(/^removed 1 run,/);
    // What waits for a decision stays, whatever its age.
    const all = ['prune', '--older-than', '0s', '--status', 'in-progress,awaiting-approval', '--yes'];
    expect((await shop.run(all)).exitCode).toBe(0);
    expect(Object.keys((await inStore(shop, contentOf)).runs)).toEqual(['order-7']);
    for (const wrong of [['--older-than', 'old'], [], ['--older-than', '1d', '--status', 'gone']])
      expect((await shop.run(['prune', ...wrong])).exitCode).toBe(2);
  });

  it('copies everything into a store of another kind, and the second time nothing', async () => {
    const shop = await givenShop(kind);
    const before = await inStore(shop, contentOf);
    const to = other(kind);
    const first = shop.start(['copy', kind.spec, to.spec, '--json']);
    expect(first.exitCode).toBe(0);
    expect(JSON.parse(first.stdout)).toMatchObject({
      checkpoints: { copied: 3 },
      approvals: { copied: 1 },
      left: [],
    });
    expect(await inStore({ ...shop, kind: to }, contentOf)).toEqual(before);
    expect((await shop.run(['copy', kind.spec, to.spec])).stdout).toBe(
      'copied 0 runs, 0 saves, 0 approvals, 0 sessions; 5 were there\n',
    );
    expect((await shop.run(['copy', kind.spec, kind.spec])).exitCode).toBe(2);
    // What happens to the copy does not happen to the original.
    const args = ['discard', 'order-8', '--yes', '--store', to.spec];
    expect((await shop.run(args)).exitCode).toBe(0);
    expect(await inStore(shop, contentOf)).toEqual(before);
  });

  it('names what it left: 5 when that executes, 1 when it differs', async () => {
    const shop = await givenShop(kind);
    const to = other(kind);
    const holder = kind.open(shop.folder);
    await holder.checkpoints?.acquireLease?.('order-8', 'somebody', 60_000);
    const busy = await shop.run(['copy', kind.spec, to.spec]);
    expect(busy.exitCode).toBe(5);
    expect(busy.stderr).toMatch(/checkpoint order-8 +executing/);
    await holder.close?.();
    await inStore({ ...shop, kind: to }, async (store) => {
      const run = await store.checkpoints?.load('order-9');
      if (run) await store.checkpoints?.save('order-9', { ...run, stepIndex: 99 });
    });
    expect((await shop.run(['copy', kind.spec, to.spec])).exitCode).toBe(1);
  });

  it('exports to stdout or into a file, and imports it into a new store', async () => {
    const shop = await givenShop(kind);
    const before = await inStore(shop, contentOf);
    const piped = shop.start(['export']);
    expect((await shop.run(['export', '--out', 'all.ndjson'])).exitCode).toBe(0);
    expect(fs.readFileSync(path.join(shop.folder, 'all.ndjson'), 'utf8')).toBe(piped.stdout);
    const to = other(kind);
    const imported = shop.start(['import', 'all.ndjson', '--store', to.spec, '--json']);
    expect(imported.exitCode).toBe(0);
    expect(await inStore({ ...shop, kind: to }, contentOf)).toEqual(before);
    expect(await shop.run(['import', 'all.ndjson', '--store', to.spec])).toMatchObject({ exitCode: 0 });
    expect(fs.readdirSync(shop.folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  it('refuses a damaged export before anything is stored', async () => {
    const shop = await givenShop(kind);
    await shop.run(['export', '--out', 'all.ndjson']);
    const whole = fs.readFileSync(path.join(shop.folder, 'all.ndjson'), 'utf8');
    const to = other(kind);
    for (const damaged of [whole.slice(0, -200), whole.replace('order-8', 'order-6'), 'hello', '']) {
      fs.writeFileSync(path.join(shop.folder, 'damaged.ndjson'), damaged);
      const { exitCode, stdout } = await shop.run(['import', 'damaged.ndjson', '--store', to.spec]);
      expect([1, 2]).toContain(exitCode);
      expect(stdout).toBe('');
      expect(fs.existsSync(path.join(shop.folder, to.spec.slice(to.spec.indexOf(':') + 1)))).toBe(false);
    }
    expect((await shop.run(['import', 'none.ndjson', '--store', to.spec])).exitCode).toBe(2);
  });

  it('creates no store to read from', async () => {
    const folder = newFolder();
    const shop = { ...(await givenShop(kind)), folder };
    const calls = [
      ['export'],
      ['export', '--fixture', 'x'],
      ['prune', '--older-than', '1d', '--yes'],
      ['discard', 'x', '--yes'],
      ['fork', 'x', '--from-step', '1'],
      ['diff', 'x', 'y'],
    ];
    for (const call of calls)
      expect(
        (await shop.run([...call, '--store', kind.spec], { cwd: folder })).exitCode,
        call.join(' '),
      ).toBe(3);
    const copy = ['copy', kind.spec, other(kind).spec];
    expect((await shop.run(copy, { cwd: folder })).exitCode).toBe(3);
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  it('drops a run that is damaged, and says of other commands what is wrong', async () => {
    const shop = await givenShop(kind);
    await damage(shop, 'order-8');
    for (const call of [
      ['resume', 'order-8'],
      ['export', '--fixture', 'order-8'],
      ['diff', 'order-8', 'order-9'],
    ])
      expect(await shop.run(call)).toMatchObject({ exitCode: 1, stdout: '' });
    const exported = await shop.run(['export', '--out', 'all.ndjson']);
    expect(exported.exitCode).toBe(1);
    expect(exported.stderr).toMatch(/checkpoint order-8.*damaged/);
    expect((await shop.run(['discard', 'order-8', '--yes'])).exitCode).toBe(0);
    expect((await shop.run(['export', '--out', 'all.ndjson', '--yes'])).exitCode).toBe(0);
  });
});

it('gives up on a locked database with an error, and changes nothing', async () => {
  const shop = await givenShop(sqlite);
  const { default: Database } = await import('better-sqlite3');
  const lock = new Database(path.join(shop.folder, 'runs.db'));
  lock.exec('BEGIN EXCLUSIVE');
  const { exitCode, stdout, stderr } = await shop.run(['discard', 'order-8', '--yes']);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toContain('LOUSHO_STORE_');
  lock.exec('ROLLBACK');
  lock.close();
  expect(Object.keys((await inStore(shop, contentOf)).runs)).toHaveLength(3);
}, 120_000);

it.skipIf(noPtyReason !== undefined)(
  'asks a person on a terminal, and does nothing at no and at Ctrl-C',
  async () => {
    const shop = await givenShop(sqlite);
    const before = await inStore(shop, contentOf);
    const press = (key: string) =>
      loushoOnTerminal(['discard', 'order-8'], {
        cwd: shop.folder,
        columns: 80,
        answers: [{ when: 'order-8', press: key }],
      });
    expect(press('n').exitCode).toBe(1);
    expect(press('\u0003').exitCode).toBe(130);
    expect(await inStore(shop, contentOf)).toEqual(before);
    expect(loushoOnTerminal(['export'], { cwd: shop.folder, columns: 80 }).exitCode).toBe(2);
    expect(press('y').exitCode).toBe(0);
    expect(Object.keys((await inStore(shop, contentOf)).runs).sort()).toEqual(['order-7', 'order-9']);
  },
);

it('compares files alone, without a store', async () => {
  const folder = newFolder();
  const say = (text: string) =>
    JSON.stringify([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'text', text }] },
    ]);
  fs.writeFileSync(path.join(folder, 'a.json'), say('one'));
  fs.writeFileSync(path.join(folder, 'b.json'), say('two'));
  fs.writeFileSync(path.join(folder, 'c.json'), '{"messages":"?"}');
  const shop = { ...(await givenShop(sqlite)), folder };
  const run = (...args: string[]) => shop.run(args, { cwd: folder });
  expect(await run('diff', 'a.json', 'b.json')).toMatchObject({ exitCode: 0 });
  expect((await run('diff', 'a.json', 'b.json')).stdout).toContain('≠ step 1');
  expect((await run('diff', 'a.json', 'c.json')).exitCode).toBe(2);
  expect((await run('diff', 'a.json', 'none.json')).exitCode).toBe(2);
});

async function inStore<Value>(
  { kind, folder }: Pick<ActingShop, 'kind' | 'folder'>,
  work: (store: AgentStore) => Promise<Value>,
): Promise<Value> {
  const store = kind.open(folder);
  try {
    return await work(store);
  } finally {
    await store.close?.();
  }
}

async function contentOf({ checkpoints, approvals, sessions }: AgentStore) {
  const listed = (await checkpoints?.list?.()) ?? [];
  const runs: Record<string, unknown> = {};
  for (const { sessionId } of listed) runs[sessionId] = await checkpoints?.history?.(sessionId);
  const ids = [...((await sessions?.list?.()) ?? [])];
  return {
    runs,
    approvals: await approvals?.list(),
    sessions: await Promise.all(ids.map(async (id) => sessions?.load(id))),
  };
}

async function damage({ kind, folder }: ActingShop, id: string): Promise<void> {
  if (kind === sqlite) {
    const { default: Database } = await import('better-sqlite3');
    const database = new Database(path.join(folder, 'runs.db'));
    const log = 'k >> 24 = (SELECT key FROM runs WHERE id = ?)';
    database.prepare(`UPDATE events SET data = replace(data, 'e', 'E') WHERE ${log}`).run(id);
    database.close();
    return;
  }
  const runFolder = path.join(folder, 'runs', 'runs', id);
  for (const name of fs.readdirSync(runFolder))
    if (name.endsWith('.jsonl')) fs.writeFileSync(path.join(runFolder, name), '{"no":"log"}\n');
}
