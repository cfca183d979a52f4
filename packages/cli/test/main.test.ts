import fs from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli } from './support/run-cli.ts';
import { newFolder, openShop, storeKinds } from './support/stores.ts';

describe.each(storeKinds)('on $name', (kind) => {
  const folder = newFolder();
  beforeAll(() => openShop(kind, folder));
  const run = (...args: string[]) => runCli([...args, '--store', kind.spec], { cwd: folder });

  it('prints data to stdout, and everything else to stderr', async () => {
    const { exitCode, stdout, stderr } = await run('pending');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^ID +STATE.*\norder-7 +awaiting-approval +shop .*\norder-8 +failed .*the carrier is down\n$/,
    );
    expect(stderr).toContain('2 runs');
    expect((await run('pending', '--quiet')).stderr).toBe('');
  });

  it('prints one JSON document', async () => {
    const { stdout, stderr } = await run('pending', '--json', '--quiet');
    expect(JSON.parse(stdout)).toMatchObject([
      { sessionId: 'order-7', status: 'awaiting-approval', agentName: 'shop', step: 2 },
      { sessionId: 'order-8', status: 'in-progress', lastError: { message: 'the carrier is down' } },
    ]);
    expect(stderr).toBe('');
  });

  it('creates nothing where there is no store', async () => {
    const empty = newFolder();
    const { exitCode, stdout, stderr } = await runCli(['pending', '--store', kind.spec], { cwd: empty });
    expect(exitCode).toBe(3);
    expect(stdout).toBe('');
    expect(stderr).toContain('LOUSHO_CLI_STORE_NOT_FOUND');
    expect(fs.readdirSync(empty)).toEqual([]);
  });
});

it('takes an empty file and an empty folder for no store', async () => {
  const folder = newFolder();
  fs.writeFileSync(path.join(folder, 'runs.db'), '');
  fs.mkdirSync(path.join(folder, 'runs'));
  for (const { spec } of storeKinds) {
    expect((await runCli(['pending', '--store', spec], { cwd: folder })).exitCode).toBe(3);
  }
  expect(fs.statSync(path.join(folder, 'runs.db')).size).toBe(0);
  expect(fs.readdirSync(path.join(folder, 'runs'))).toEqual([]);
});

it('says what is wrong with the call, with exit code 2 and nothing on stdout', async () => {
  const cwd = newFolder();
  const wrong: readonly (readonly [string[], string])[] = [
    [['pending'], 'No store was given'],
    [['pending', '--store', 'redis://x'], 'Nobody knows stores "redis:"'],
    [['pending', '--config', 'none.ts'], 'There is no file'],
    [['bogus\u001b[31m'], "unknown command 'bogus\\x1b[31m'"],
    [['pending', '--bogus'], 'unknown option'],
  ];
  for (const [args, message] of wrong) {
    const { exitCode, stdout, stderr } = await runCli(args, { cwd });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain(message);
  }
});

it('reports an error as JSON where data is JSON', async () => {
  const { stderr } = await runCli(['pending', '--json', '--store', 'sqlite:./none.db'], { cwd: newFolder() });
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'LOUSHO_CLI_STORE_NOT_FOUND' } });
});

it('shows whole lines on a terminal that does not know how wide it is', async () => {
  const folder = newFolder();
  const [sqlite] = storeKinds;
  if (sqlite === undefined) throw new Error('no store');
  await openShop(sqlite, folder);
  const { stdout } = await runCli(['pending', '--store', sqlite.spec], { cwd: folder, columns: 0 });
  expect(stdout).toContain('order-7');
});

it('finds something wrong when the store that doctor is given cannot be opened, and nothing when none is given', async () => {
  const cwd = newFolder();
  for (const spec of ['redis://x', 'shop.db', 'sqlite:./none.db']) {
    const { exitCode, stderr } = await runCli(['doctor', '--store', spec], { cwd });
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: '1 thing is wrong.\n' });
  }
  const { exitCode, stdout } = await runCli(['doctor'], { cwd });
  expect(exitCode).toBe(0);
  expect(stdout).toContain('No store was given');
});

it('colours only what a terminal reads, and not against the will of the user', async () => {
  const folder = newFolder();
  const [sqlite] = storeKinds;
  if (sqlite === undefined) throw new Error('no store');
  await openShop(sqlite, folder);
  const args = ['pending', '--store', sqlite.spec];
  const hasColors = async (...[more, options]: [string[], object]) =>
    (await runCli([...args, ...more], { cwd: folder, ...options })).stdout.includes('\u001b[');
  expect(await hasColors([], {})).toBe(false);
  expect(await hasColors([], { columns: 80 })).toBe(true);
  expect(await hasColors(['--no-color'], { columns: 80 })).toBe(false);
  expect(await hasColors([], { columns: 80, env: { NO_COLOR: '1' } })).toBe(false);
  expect(await hasColors([], { columns: 80, env: { TERM: 'dumb' } })).toBe(false);
  expect(await hasColors([], { env: { FORCE_COLOR: '1' } })).toBe(true);
});
