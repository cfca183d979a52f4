/** The built `lousho` as people and scripts run it. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import { lousho, startLousho } from './support/cli-process.ts';
import { loushoOnTerminal, noPtyReason } from './support/pty.ts';
import { newFolder, openShop, storeKinds, type StoreKind } from './support/stores.ts';
import { widthOf } from '../src/terminal/visible-text.ts';

if (noPtyReason !== undefined) console.warn(`Tests on a terminal are left out: ${noPtyReason}.`);

const commands: readonly (readonly [words: string, exitCode: number])[] = [
  ['pending', 0],
  ['show order-7', 0],
  ['show order-8 --all --full', 0],
  ['runs list', 0],
  ['runs watch order-7', 4],
  ['history order-9', 0],
  ['approvals list', 0],
  ['leases list', 0],
  ['doctor', 0],
];
const escapes = new RegExp('\u001b\\[[0-9;?]*[A-Za-z]', 'g');

describe.each(storeKinds)('on $name', (kind) => {
  const folder = newFolder();
  beforeAll(() => openShop(kind, folder));

  it.each(commands)('%s: without a terminal there is nothing but text', (words, exitCode) => {
    const { exitCode: ended, stdout } = lousho([...words.split(' '), '--store', kind.spec], { cwd: folder });
    expect({ exitCode: ended, escapes: stdout.match(escapes) }).toEqual({ exitCode, escapes: null });
  });

  it.skipIf(noPtyReason !== undefined).each(commands)(
    '%s: a terminal of 50 columns is enough',
    (words, exitCode) => {
      const { exitCode: ended, screen } = loushoOnTerminal(
        [...words.split(' '), '--quiet', '--store', kind.spec],
        {
          cwd: folder,
          columns: 50,
        },
      );
      expect(ended).toBe(exitCode);
      const lines = screen.replaceAll(escapes, '').split('\n');
      // What is there to be copied is whole.
      const isCommand = (line: string) => line.trimStart().startsWith('lousho ');
      expect(lines.filter((line) => widthOf(line) > 50 && !isCommand(line))).toEqual([]);
      if (words === 'show order-7')
        expect(lines.join('\n')).toMatch(
          new RegExp(`approvals approve order-7\\.apr-\\S+ --store ${kind.spec}\n`),
        );
      if (screen !== '') expect(screen).toMatch(escapes);
    },
  );
});

describe('with a configuration', () => {
  const folder = newFolder();
  beforeAll(async () => {
    await openShop(storeKinds[0]!, folder);
    linkPackages(folder);
  });
  const write = (name: string, text: string) => fs.writeFileSync(path.join(folder, name), text);

  it.each(['lousho.config.ts', 'lousho.config.mjs'])(
    'reads %s, with agents and packages of its own',
    (name) => {
      const isTypeScript = name.endsWith('.ts');
      write(
        name,
        `import { defineConfig } from '@lousho/cli';
      import { createAgent } from '@lousho/core';
      import { mockModel } from '@lousho/testing';
      ${isTypeScript ? 'enum Name { shop = "shop" }' : 'const Name = { shop: "shop" };'}
      const agent = createAgent({ name: Name.shop, provider: mockModel([])${isTypeScript ? ' as never' : ''} });
      export default defineConfig({ store: 'sqlite:./runs.db', agents: { shop: agent } });`,
      );
      const elsewhere = newFolder();
      const { exitCode, stdout, stderr } = lousho(['pending', '-C', folder], { cwd: elsewhere });
      expect(stderr).not.toContain('✗');
      expect(exitCode).toBe(0);
      expect(stdout).toContain('order-7');
      fs.rmSync(path.join(folder, name));
    },
  );

  it('says what is wrong with one, and where', () => {
    const wrong: readonly (readonly [string, string])[] = [
      ['export default 5;', 'exports no configuration'],
      ['export default { stores: {} };', 'has "stores", which nobody knows'],
      ['export default { agents: { a: {} } };', 'has agents.a, which createAgent did not make'],
      ['export default {', 'could not be loaded'],
      ['throw new Error("no key \\u001b[31m")', 'no key \\x1b[31m'],
    ];
    for (const [text, message] of wrong) {
      write('wrong.config.mjs', text);
      const { exitCode, stderr } = lousho(['pending', '--config', 'wrong.config.mjs'], { cwd: folder });
      expect(exitCode).toBe(2);
      expect(stderr).toContain(message);
    }
  });

  it('takes a module for the store, whatever store that is', () => {
    write(
      'store.mjs',
      `import { createAgent } from '@lousho/core';
      import { KVStore } from '@lousho/store-kv';
      import { mockModel } from '@lousho/testing';
      const values = new Map();
      export const store = new KVStore({
        get: async (key) => values.get(key) ?? null,
        put: async (key, value) => void values.set(key, value),
        delete: async (key) => void values.delete(key),
      });
      await createAgent({ provider: mockModel(['Done.']), store }).send('Do it.', { sessionId: 'in-kv' });`,
    );
    const show = lousho(['show', 'in-kv', '--store', './store.mjs'], { cwd: folder });
    expect(show.stdout).toMatch(/^in-kv {2}finished\n/);
    const list = lousho(['runs', 'list', '--store', './store.mjs'], { cwd: folder });
    expect({ exitCode: list.exitCode, stdout: list.stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(list.stderr).toContain('The store cannot list its runs');
    expect(lousho(['pending', '--store', './none.mjs'], { cwd: folder }).exitCode).toBe(3);
  });

  it('lets nothing through that steers a terminal, whatever a store says', () => {
    write(
      'hostile.mjs',
      `const evil = 'x\\u001b[2J\\u001b]0;owned\\u0007\\u202e\\u009b31m\\r\\ny';
      const text = (value) => JSON.parse(JSON.stringify(value).replaceAll('EVIL', JSON.stringify(evil).slice(1, -1)));
      const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, modelCalls: 1 };
      const checkpoint = text({
        version: 1, runId: 'EVIL', agentName: 'EVIL', status: 'awaiting-approval', approvalId: 'EVIL', approvalIds: ['EVIL'],
        messages: [
          { role: 'user', content: 'EVIL' },
          { role: 'assistant', content: [{ type: 'text', text: 'EVIL' }, { type: 'tool-call', toolCallId: 'EVIL', toolName: 'EVIL', args: { EVIL: 'EVIL' } }] },
        ],
        stepIndex: 1, usage: { ...usage, byModel: { EVIL: usage } }, runInput: { start: 0, count: 1 }, heldInput: [], inputIds: [], settledResults: [],
        startedToolCallIds: [], approvals: [{ id: 'EVIL', kind: 'tool', toolCallId: 'EVIL', argsHash: '', createdAt: 'EVIL' }], delegatedInFlight: [],
        principal: { id: 'EVIL' }, savedAt: 'EVIL',
      });
      const { messages, ...header } = checkpoint;
      const entry = { sessionId: evil, status: 'awaiting-approval', header: { ...header, messageCount: 2 } };
      const record = text({ id: 'EVIL', kind: 'tool', runId: 'EVIL', agentName: 'EVIL', toolCallId: 'EVIL', toolName: 'EVIL', args: 'EVIL', createdAt: 'EVIL', checkpointId: 'EVIL', argsHash: '' });
      const lease = text({ id: 'EVIL', owner: 'EVIL', fence: 1, renewCount: 0, expiresAtMs: 1, ttlMs: 1, holder: { instanceId: 'i', host: 'EVIL', pid: 1 } });
      export const store = {
        checkpoints: {
          save: async () => {}, delete: async () => {}, load: async () => checkpoint,
          listHeaders: async () => [entry, { sessionId: 'damaged', status: 'in-progress', header: null, error: text({ name: 'EVIL', message: 'EVIL', retryable: false }) }],
          history: async () => [{ step: 1, savedAt: evil, status: 'awaiting-approval', checkpoint }],
          heldLeases: async () => [lease],
        },
        approvals: { save: async () => {}, delete: async () => false, load: async () => record, list: async () => [record] },
      };`,
    );
    // The end of a line is ours, and \\r that of a line of a terminal.
    const raw = new RegExp('[\\u0000-\\u0009\\u000b-\\u001f\\u007f-\\u009f\\u202e]');
    // Colours, and what a line of progress wipes itself with.
    const ours = new RegExp('\u001b\\[[0-9;]*m|\\r\u001b\\[K', 'g');
    for (const words of [
      'pending',
      'show any',
      'show any --full',
      'show any --json',
      'history any',
      'approvals list',
      'leases list',
      'doctor',
    ]) {
      const args = [...words.split(' '), '--store', './hostile.mjs'];
      const { stdout, stderr } = lousho(args, { cwd: folder });
      expect(stdout, words).not.toBe('');
      expect(`${stdout}${stderr}`, words).not.toMatch(raw);
      if (noPtyReason !== undefined) continue;
      const { screen } = loushoOnTerminal(args, { cwd: folder, columns: 70 });
      expect(screen.replaceAll(ours, ''), words).not.toMatch(raw);
    }
  }, 120_000);
});

/** As if it had installed them. */
function linkPackages(folder: string): void {
  const installed = fileURLToPath(new URL('../../../node_modules', import.meta.url));
  fs.symlinkSync(installed, path.join(folder, 'node_modules'));
}

/** Changes a text that is in what is stored of this run alone. */
function damage(kind: StoreKind, folder: string, id: string, from: string, to: string): void {
  if (kind.name === 'file') {
    const run = path.join(folder, 'runs', 'runs', id);
    const log = path.join(run, fs.readdirSync(run).find((name) => name.endsWith('.jsonl')) ?? '');
    const text = fs.readFileSync(log, 'utf8');
    expect(text).toContain(from);
    fs.writeFileSync(log, text.replace(from, to));
    return;
  }
  const database = new Database(path.join(folder, 'runs.db'));
  const update = database.prepare('UPDATE events SET data = replace(data, ?, ?) WHERE instr(data, ?)');
  expect(update.run(from, to, from).changes).toBe(1);
  database.close();
}

describe('when the store is damaged or in use', () => {
  it.each(storeKinds)('shows damage as one run of many, and doctor finds it, on $name', async (kind) => {
    const folder = newFolder();
    await openShop(kind, folder);
    damage(kind, folder, 'order-8', 'Ship order', 'Skip order');
    const args = ['--store', kind.spec];
    const list = lousho(['pending', ...args], { cwd: folder });
    expect(list.stdout).toContain('order-7');
    expect(list.stdout).toMatch(/order-8 +damaged/);
    const show = lousho(['show', 'order-8', ...args], { cwd: folder });
    expect({ exitCode: show.exitCode, stdout: show.stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(show.stderr).toContain('LOUSHO_CHECKPOINT_CORRUPT');
    const doctor = lousho(['doctor', ...args], { cwd: folder });
    expect(doctor.exitCode).toBe(1);
    expect(doctor.stdout).toContain('1 record is damaged: order-8');
  });

  it.each(storeKinds)('finds damage in a run that is over with --deep, on $name', async (kind) => {
    const folder = newFolder();
    await openShop(kind, folder);
    damage(kind, folder, 'order-9', 'What is order 9?', 'What is order 6?');
    const { exitCode, stdout } = lousho(['doctor', '--deep', '--store', kind.spec], { cwd: folder });
    expect(exitCode).toBe(1);
    expect(stdout).toContain('1 record is damaged: order-9');
  });

  it.each(storeKinds)('tells that the process of a run died, on $name', async (kind) => {
    const folder = newFolder();
    await openShop(kind, folder);
    linkPackages(folder);
    const opens = {
      sqlite: `new (await import('@lousho/store-sqlite')).SqliteStore('runs.db')`,
      file: `(await import('@lousho/store-file')).fileStore('runs')`,
    }[kind.name];
    const dies = `const store = ${opens};
      await store.checkpoints.acquireLease('order-8', 'owner', 3_600_000);
      process.kill(process.pid, 'SIGKILL');`;
    const { signal } = spawnSync(process.execPath, ['--input-type=module', '-e', dies], { cwd: folder });
    expect(signal).toBe('SIGKILL');
    const args = ['--store', kind.spec];
    const leases = lousho(['leases', 'list', ...args, '--json'], { cwd: folder });
    expect(JSON.parse(leases.stdout)).toMatchObject([{ id: 'order-8', state: 'stale', isHolderGone: true }]);
    expect(lousho(['show', 'order-8', ...args], { cwd: folder }).stdout).toMatch(
      /^order-8 {2}failed\n[^]*lease +process \d+ on this machine is gone/,
    );
    const doctor = lousho(['doctor', ...args], { cwd: folder });
    expect(doctor.stdout).toContain('1 process died with a run: order-8');
    expect(doctor.exitCode).toBe(0);
  });

  it('reads a database that somebody writes to', async () => {
    const [kind] = storeKinds;
    const folder = newFolder();
    await openShop(kind!, folder);
    const writer = new Database(path.join(folder, 'runs.db'));
    writer.exec('BEGIN IMMEDIATE');
    const { exitCode, stdout } = lousho(['pending', '--store', kind!.spec], { cwd: folder });
    writer.exec('ROLLBACK');
    writer.close();
    expect(exitCode).toBe(0);
    expect(stdout).toContain('order-7');
  });
});

describe('with 10,000 runs', () => {
  const folder = newFolder();
  const [kind] = storeKinds;
  beforeAll(async () => {
    const store = kind!.open(folder);
    await openShop(kind!, folder);
    const { checkpoints } = store;
    const finished = await checkpoints?.load('order-9');
    if (checkpoints === undefined || !finished) throw new Error('no run');
    await Promise.all(
      Array.from({ length: 9_997 }, (_, index) => checkpoints.save(`many-${index}`, finished)),
    );
    await store.close?.();
  });

  it('lists them all', () => {
    const { exitCode, stdout } = lousho(['runs', 'list', '--store', kind!.spec], { cwd: folder });
    expect(exitCode).toBe(0);
    expect(stdout.split('\n')).toHaveLength(10_002);
    const { stdout: json } = lousho(['runs', 'list', '--json', '--store', kind!.spec], { cwd: folder });
    expect(JSON.parse(json)).toHaveLength(10_000);
  });

  it('ends in silence when nobody reads on', async () => {
    const child = startLousho(['runs', 'list', '--quiet', '--store', kind!.spec], { cwd: folder });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdout.once('data', () => child.stdout.destroy());
    const exitCode = await new Promise((resolve) => child.once('close', resolve));
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  });

  it('ends a watch with 130 at Ctrl-C', async () => {
    const child = startLousho(['runs', 'watch', '--store', kind!.spec], { cwd: folder });
    child.stderr.once('data', () => child.kill('SIGINT'));
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(130);
  });
});
