/** What a new user and a store author begin with: demo, init, verify-store. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { checkDemo } from '../src/demo/demo-check.ts';
import { packagesFolder } from './support/acting-shop.ts';
import { lousho } from './support/cli-process.ts';
import { runCli } from './support/run-cli.ts';
import { newFolder } from './support/stores.ts';

it('shows an agent that is killed, goes on and waits for a person, and checks what came of it', () => {
  const { exitCode, stdout } = lousho(['demo'], { cwd: newFolder() });
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/killed with SIGKILL.*went on.*approve refund/s);
  expect(stdout.match(/^✓ /gm)).toHaveLength(6);
  expect(stdout).not.toContain('✗ the');
});

it('would say what is wrong, if a card was charged twice or a response asked for twice', () => {
  const charge = { tool: 'charge_card', key: 'a', process: 1 };
  const wrong = checkDemo(
    undefined,
    [
      { type: 'began', ...charge },
      { type: 'began', ...charge },
      { type: 'answered', step: 1, process: 1 },
      { type: 'answered', step: 1, process: 2 },
    ],
    1,
  );
  expect(wrong.every(({ ok }) => !ok)).toBe(true);
});

it('writes an agent that runs, pauses, and is decided with the command line', () => {
  const folder = packagesFolder();
  expect(lousho(['init'], { cwd: folder })).toMatchObject({
    exitCode: 0,
    stdout: '✓ agent.mjs\n✓ lousho.config.mjs\n',
  });
  const ran = spawnSync(process.execPath, ['agent.mjs'], { cwd: folder, encoding: 'utf8' });
  expect(ran.stdout).toContain('awaiting-approval');
  const [pending] = JSON.parse(lousho(['pending', '--json'], { cwd: folder }).stdout) as {
    approvalIds: string[];
  }[];
  const approved = lousho(['approvals', 'approve', pending?.approvalIds[0] ?? ''], { cwd: folder });
  expect(approved).toMatchObject({ exitCode: 0, stdout: 'Order 8: 50.00 were given back.\n' });
});

it('writes over nothing unasked, and not beside another configuration', async () => {
  const folder = newFolder();
  fs.writeFileSync(path.join(folder, 'agent.mjs'), 'mine');
  const refused = await runCli(['init'], { cwd: folder });
  expect(refused.exitCode).toBe(2);
  expect(fs.readdirSync(folder)).toEqual(['agent.mjs']);
  expect(fs.readFileSync(path.join(folder, 'agent.mjs'), 'utf8')).toBe('mine');
  expect((await runCli(['init', '--yes'], { cwd: folder })).exitCode).toBe(0);
  expect((await runCli(['init'], { cwd: folder })).stderr).toContain('Everything is there');
  fs.writeFileSync(path.join(folder, 'tsconfig.json'), '{}');
  expect((await runCli(['init', '--yes'], { cwd: folder })).exitCode).toBe(2);
  expect(fs.existsSync(path.join(folder, 'agent.ts'))).toBe(false);
});

it('says which promises a store keeps, and which it breaks and why', async () => {
  const folder = packagesFolder();
  const subject = (more: string) => `
    import { memoryStore } from '@lousho/store-memory';
    import { testPorts } from '@lousho/testing';
    export const subject = {
      name: 'my store',
      claims: { leases: 'atomic', history: true, list: true, durable: 'memory', consistency: 'strong' },
      async createStorage(clock) {
        const store = memoryStore({ ports: testPorts(clock) });
        ${more}
        return { open: async () => store, destroy: () => store.close() };
      },
    };`;
  fs.writeFileSync(path.join(folder, 'good.mjs'), subject(''));
  fs.writeFileSync(path.join(folder, 'bad.mjs'), subject('store.checkpoints.history = async () => [];'));
  fs.writeFileSync(path.join(folder, 'none.mjs'), 'export default 1;');
  const kept = lousho(['verify-store', './good.mjs', '--only', 'checkpoints', 'L3', '--json'], {
    cwd: folder,
  });
  expect(kept.exitCode).toBe(0);
  expect(JSON.parse(kept.stdout)).toMatchObject({ subject: 'my store', passed: true });
  const run = async (...args: string[]) => runCli(['verify-store', ...args], { cwd: folder });
  const broken = await run('./bad.mjs', '--only', 'history');
  expect(broken.exitCode).toBe(1);
  expect(broken.stdout).toMatch(/✗ history.*breaks H1.*expected:.*hint:/s);
  expect((await run('./none.mjs')).exitCode).toBe(2);
  expect((await run('./missing.mjs')).exitCode).toBe(2);
  expect((await run('./good.mjs', '--only', 'X99')).exitCode).toBe(2);
});
