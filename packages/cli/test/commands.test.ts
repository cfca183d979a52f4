import { manualClock, type ManualClock } from '@lousho/testing';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { runCli } from './support/run-cli.ts';
import { newFolder, openShop, shop, storeKinds } from './support/stores.ts';

describe.each(storeKinds)('on $name', (kind) => {
  const folder = newFolder();
  const clock: ManualClock = manualClock();
  const run = (...args: string[]) => runCli([...args, '--store', kind.spec], { cwd: folder, clock });
  const json = async (...args: string[]): Promise<unknown> =>
    JSON.parse((await run(...args, '--json')).stdout);

  beforeAll(async () => {
    await openShop(kind, folder, clock);
    await clock.advance(180_000);
  });

  it('shows a run that waits: its steps, the exact arguments, how to decide, what comes next', async () => {
    const { exitCode, stdout } = await run('show', 'order-7');
    expect(exitCode).toBe(0);
    expect(stdout.replaceAll(/apr-[a-z0-9]{8}/g, 'apr-xxxxxxxx')).toBe(`order-7  awaiting-approval
  agent     shop
  saved     3 min ago  2026-01-01T00:00:00.000Z
  steps     2 steps, 5 messages
  usage     2 model calls · 2 tokens in, 2 out · mock
  lease     free

input
  Charge order 7.

step 1  3 min ago
  → look_up {"order":7}
  ← {"order":7,"items":["book","pen"]}

step 2  3 min ago
  I charge the card.
  → charge_card {"cents":4200,"card":"visa"}
  ◆ waits for a person

◆ May it call charge_card  since 3 min ago
    {
      "cents": 4200,
      "card": "visa"
    }
  lousho approvals approve order-7.apr-xxxxxxxx-2-0 --store ${kind.spec}
  lousho approvals reject order-7.apr-xxxxxxxx-2-0 --note <why> --store ${kind.spec}

next  A person decides; when the last decision is made, the run goes on.
`);
  });

  it('shows why a run failed, and what to do', async () => {
    const { stdout } = await run('runs', 'show', 'order-8');
    expect(stdout).toContain('✗ the carrier is down');
    expect(stdout).toContain(`lousho resume order-8 --store ${kind.spec}`);
  });

  it.each([
    'pending',
    'show order-7',
    'runs list',
    'runs watch order-9',
    'history order-9',
    'approvals list',
    'leases list',
    'doctor',
  ])('%s --json prints one document and nothing else', async (words) => {
    const { stdout, stderr } = await run(...words.split(' '), '--json', '--quiet');
    expect(() => JSON.parse(stdout) as unknown).not.toThrow();
    expect(stderr).toBe('');
  });

  it('finds a run by its approval, and a session by its id', async () => {
    const [approval] = (await json('approvals', 'list')) as { id: string }[];
    expect(await json('show', approval?.id ?? '')).toMatchObject({
      id: 'order-7',
      state: 'awaiting-approval',
      lease: null,
      approvals: [{ toolName: 'charge_card', args: { cents: 4_200, card: 'visa' } }],
      checkpoint: { stepIndex: 2 },
    });
    expect((await run('show', 'chat')).stdout).toMatch(/^chat  session at rest\n.*1 turn[^]*Hello Ada\./);
  });

  it('shows the conversation before a turn when it is asked for, and counts the steps of the turn', async () => {
    const own = newFolder();
    const store = kind.open(own);
    const charge = { toolCalls: [{ name: 'charge_card', args: { cents: 1 } }] };
    const session = shop(store, ['Hello Ada.', charge], clock).session({ id: 'talk' });
    await session.send('Hello.');
    await session.send('Charge a cent.');
    await store.close?.();
    const show = async (...args: string[]) =>
      (await runCli(['show', 'talk', ...args, '--store', kind.spec], { cwd: own, clock })).stdout;
    const titles = (text: string) => text.match(/^(?:input|(?:earlier )?step.*)$/gm);
    expect(titles(await show())).toEqual(['input', 'step 1  just now']);
    expect(await show()).toContain('… 2 messages of the conversation before');
    expect(titles(await show('--all'))).toEqual(['input', 'earlier step', 'input', 'step 1  just now']);
  });

  it.each(['order-70', 'Order-7', 'no such run', '\u001b[31m', '..', 'x'.repeat(400)])(
    'says that there is no run %j',
    async (id) => {
      for (const command of ['show', 'history']) {
        const { exitCode, stdout, stderr } = await run(command, id);
        expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' });
        expect(stderr).toContain('LOUSHO_CLI_RUN_NOT_FOUND');
        expect(stderr).not.toContain('\u001b');
      }
    },
  );

  it('lists runs by their state, and the newest last', async () => {
    const ids = async (...args: string[]) =>
      ((await json('runs', 'list', ...args)) as { sessionId: string }[]).map(({ sessionId }) => sessionId);
    expect(await ids()).toEqual(['order-7', 'order-8', 'order-9']);
    expect(await ids('--limit', '1')).toEqual(['order-9']);
    expect(await ids('--status', 'finished')).toEqual(['order-9']);
    expect(await ids('--status', 'failed,awaiting-approval')).toEqual(['order-7', 'order-8']);
    expect(await ids('--status', 'parked')).toEqual([]);
    const { exitCode, stderr } = await run('runs', 'list', '--status', 'stuck');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('States are running');
  });

  it('shows the saves that a fork can begin at', async () => {
    expect(await json('history', 'order-9')).toMatchObject([
      { step: 2, status: 'finished', last: 'It is a book and a pen.' },
      { step: 1, status: 'in-progress', last: 'look_up (1 of 1 result)' },
      { step: 1, status: 'in-progress', last: 'look_up (0 of 1 result)' },
    ]);
  });

  it('lists what waits for a person with its arguments', async () => {
    const { stdout } = await run('approvals', 'list');
    expect(stdout).toMatch(
      /^ID .*\norder-7\.apr-\S+ +tool +charge_card +3 min ago .*{"cents":4200,"card":"visa"}\n$/,
    );
  });

  it('tells who executes a run, and that it executes', async () => {
    const store = kind.open(folder);
    await store.checkpoints?.acquireLease?.('order-8', 'somebody', 3_600_000);
    // Leases of a store are of the wall clock, whatever the agent has.
    const now = (...args: string[]) =>
      runCli([...args, '--store', kind.spec], { cwd: folder, clock: manualClock(Date.now()) });
    const [lease] = JSON.parse((await now('leases', 'list', '--json')).stdout) as object[];
    expect(lease).toMatchObject({ id: 'order-8', state: 'held', holder: { pid: process.pid } });
    expect((await now('leases', 'list')).stdout).toContain(`process ${process.pid} on this machine`);
    expect((await now('show', 'order-8')).stdout).toMatch(/^order-8 {2}running\n/);
    await store.checkpoints?.releaseLease?.('order-8', 'somebody');
    await store.close?.();
    expect((await now('leases', 'list', '--json')).stdout).toBe('[]\n');
  });

  it('watches a run until it needs somebody', async () => {
    const waits = await run('runs', 'watch', 'order-7', '--json');
    expect(waits.exitCode).toBe(4);
    expect(JSON.parse(waits.stdout)).toMatchObject({ sessionId: 'order-7', state: 'awaiting-approval' });
    expect((await run('runs', 'watch', 'order-8')).exitCode).toBe(1);
    const ends = await run('runs', 'watch', 'order-9');
    expect(ends.exitCode).toBe(0);
    expect(ends.stdout).toContain('It is a book and a pen.');
  });

  it('watches the whole store until Ctrl-C, and tells what is new', async () => {
    const own = manualClock();
    let pauses = 0;
    const counted = {
      ...own,
      setTimer: (...args: Parameters<ManualClock['setTimer']>) => {
        pauses += 1;
        return own.setTimer(...args);
      },
    };
    let pressCtrlC: () => void = () => undefined;
    const watching = runCli(['runs', 'watch', '--json', '--store', kind.spec], {
      cwd: folder,
      clock: counted,
      onStart: (press) => (pressCtrlC = press),
    });
    await vi.waitFor(() => expect(pauses).toBe(1), { timeout: 30_000 });
    const store = kind.open(folder);
    await shop(store, ['New.'], clock).send('Something.', { sessionId: 'order-11' });
    await own.advance(1_000);
    await vi.waitFor(() => expect(pauses).toBe(2), { timeout: 30_000 });
    pressCtrlC();
    const { exitCode, stdout } = await watching;
    expect(exitCode).toBe(130);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toMatchObject([{ sessionId: 'order-11', state: 'finished' }]);
    await store.checkpoints?.delete('order-11');
    await store.close?.();
  });

  it('finds nothing wrong with a store that is in order, and says what it is', async () => {
    const { exitCode, stdout } = await run('doctor');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('atomic leases, survives a power cut');
    expect(stdout).toContain('3 runs, 0 running, 1 waiting for a person, 0 interrupted, 1 failed');
  });
});
