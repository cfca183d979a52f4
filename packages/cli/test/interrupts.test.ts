/** Ctrl-C, a kill and a reader that goes away: what was done stays, and the same command does the rest. */
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import type { AgentStore } from '@lousho/contract';
import { fileStore } from '@lousho/store-file';
import { SqliteStore } from '@lousho/store-sqlite';
import { expect, it } from 'vitest';
import { givenShop, packagesFolder, waitingId } from './support/acting-shop.ts';
import { lousho, startLousho } from './support/cli-process.ts';
import { openShop, storeKinds, type StoreKind } from './support/stores.ts';

const [sqlite, file] = storeKinds as [StoreKind, StoreKind];
const RUNS = 12;

/** For modules that export a store which presses Ctrl-C: the store with some methods of its own. */
const withMethods = `
  const withMethods = (part, own) => new Proxy(part, {
    get(target, name) {
      const value = own[name] ?? target[name];
      return typeof value === 'function' && own[name] === undefined ? value.bind(target) : value;
    },
  });
  const pressCtrlC = () => process.kill(process.pid, 'SIGINT');
  /** In its fifth call. */
  const pressing = (part, method) => {
    let calls = 0;
    return withMethods(part, { [method](...args) {
      if ((calls += 1) === 5) pressCtrlC();
      return part[method](...args);
    } });
  };`;

it('copies the rest after Ctrl-C in the middle of a copy, and nothing is lost', async () => {
  const folder = packagesFolder();
  await givenRuns(sqlite, folder);
  fs.writeFileSync(
    path.join(folder, 'to.mjs'),
    `import { fileStore } from '@lousho/store-file';
     ${withMethods}
     const store = fileStore('./copy');
     export default withMethods(store, { checkpoints: pressing(store.checkpoints, 'saveIfLeased') });`,
  );
  const cut = lousho(['copy', sqlite.spec, './to.mjs'], { cwd: folder });
  expect(cut).toMatchObject({ exitCode: 130, stdout: '' });
  expect(cut.stderr).toContain('Stopped');
  const [from, to] = [sqlite.open(folder), fileStore(path.join(folder, 'copy'))];
  const [before, copied] = [await idsOf(from), await idsOf(to)];
  expect(copied.length).toBeGreaterThan(0);
  expect(copied.length).toBeLessThan(before.length);
  await to.close();
  const rest = lousho(['copy', sqlite.spec, 'file:./copy', '--json'], { cwd: folder });
  expect(rest.exitCode).toBe(0);
  const again = fileStore(path.join(folder, 'copy'));
  expect(await contentOf(again)).toEqual(await contentOf(from));
  await Promise.all([from.close?.(), again.close()]);
});

it('imports the rest after Ctrl-C, and an export that was cut off is not there', async () => {
  const folder = packagesFolder();
  await givenRuns(file, folder);
  expect(lousho(['export', '--store', file.spec, '--out', 'all.ndjson'], { cwd: folder }).exitCode).toBe(0);
  fs.writeFileSync(
    path.join(folder, 'slow.mjs'),
    `import { fileStore } from '@lousho/store-file';
     ${withMethods}
     const store = fileStore('./runs');
     export default withMethods(store, { checkpoints: pressing(store.checkpoints, 'load') });`,
  );
  const cut = lousho(['export', '--store', './slow.mjs', '--out', 'cut.ndjson'], { cwd: folder });
  expect(cut.exitCode).toBe(130);
  expect(fs.readdirSync(folder).filter((name) => name.startsWith('cut'))).toEqual([]);
  fs.writeFileSync(
    path.join(folder, 'to.mjs'),
    `import { SqliteStore } from '@lousho/store-sqlite';
     ${withMethods}
     const store = new SqliteStore('./copy.db');
     export default withMethods(store, { checkpoints: pressing(store.checkpoints, 'saveIfLeased') });`,
  );
  expect(lousho(['import', 'all.ndjson', '--store', './to.mjs'], { cwd: folder }).exitCode).toBe(130);
  expect(lousho(['import', 'all.ndjson', '--store', 'sqlite:./copy.db'], { cwd: folder }).exitCode).toBe(0);
  const [from, to] = [file.open(folder), new SqliteStore(path.join(folder, 'copy.db'))];
  expect(await contentOf(to)).toEqual(await contentOf(from));
  await Promise.all([from.close?.(), to.close()]);
});

it('prunes the rest after Ctrl-C in the middle of a prune, and takes nothing that was not meant', async () => {
  const folder = packagesFolder();
  await givenRuns(file, folder);
  const source = file.open(folder);
  const unfinished = ['order-7', 'order-8'];
  const kept = await Promise.all(unfinished.map(async (id) => source.checkpoints?.load(id)));
  await source.close?.();
  // Ctrl-C as soon as some runs are gone, and not all.
  fs.writeFileSync(
    path.join(folder, 'store.mjs'),
    `import fs from 'node:fs';
     import { fileStore } from '@lousho/store-file';
     ${withMethods}
     const store = fileStore('./runs');
     export default withMethods(store, { prune(options) {
       const all = fs.readdirSync('./runs/runs').length;
       const watch = () => (fs.readdirSync('./runs/runs').length < all ? pressCtrlC() : setImmediate(watch));
       if (options.dryRun !== true) watch();
       return store.prune(options);
     } });`,
  );
  const args = ['prune', '--older-than', '0s', '--yes'];
  const cut = lousho([...args, '--store', './store.mjs'], { cwd: folder });
  expect(cut).toMatchObject({ exitCode: 130, stdout: '' });
  const left = file.open(folder);
  const leftIds = await idsOf(left);
  await left.close?.();
  expect(leftIds.length).toBeGreaterThan(unfinished.length);
  expect(leftIds.length).toBeLessThan(RUNS + 3);
  expect(lousho([...args, '--store', file.spec], { cwd: folder }).exitCode).toBe(0);
  const after = file.open(folder);
  expect(await idsOf(after)).toEqual(unfinished);
  expect(await Promise.all(unfinished.map(async (id) => after.checkpoints?.load(id)))).toEqual(kept);
  await after.close?.();
});

it('records what runs before it goes at Ctrl-C, and the next process does not run it again', async () => {
  const shop = await givenShop(sqlite);
  const id = await waitingId(shop);
  const child = startLousho(['approvals', 'approve', id], {
    cwd: shop.folder,
    env: { SLOW_TOOL: 'charge_card' },
  });
  const exit = once(child, 'exit');
  while (shop.effects().length === 0) await new Promise((resolve) => setImmediate(resolve));
  child.kill('SIGINT');
  expect((await exit)[0]).toBe(130);
  expect(shop.effects()).toHaveLength(1);
  expect(await shop.run(['resume', 'order-7'])).toMatchObject({ exitCode: 0, stdout: 'Charged.\n' });
  expect(shop.effects()).toHaveLength(1);
});

it('recovers until Ctrl-C', async () => {
  const shop = await givenShop(file);
  const child = startLousho(['recover', '--json'], { cwd: shop.folder });
  const exit = once(child, 'exit');
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  expect(JSON.parse(line.toString('utf8'))).toMatchObject({ type: 'recovered', sessionId: 'order-8' });
  child.kill('SIGINT');
  expect((await exit)[0]).toBe(130);
});

it('stops recovering when nobody reads what it finds', async () => {
  const shop = await givenShop(sqlite);
  const child = startLousho(['recover', '--json'], { cwd: shop.folder });
  child.stdout.destroy();
  expect((await once(child, 'exit'))[0]).toBe(0);
  expect(shop.effects()).toHaveLength(1);
});

it('frees the run of a killed process at once, and that of a living one only by force', async () => {
  const shop = await givenShop(sqlite);
  const holder = sqlite.open(shop.folder);
  const lease = await holder.checkpoints?.acquireLease?.('order-8', 'somebody', 60_000);
  const refused = await shop.run(['leases', 'release', 'order-8']);
  expect(refused.exitCode).toBe(5);
  expect(refused.stderr).toContain(`process ${process.pid} on this machine`);
  expect((await shop.run(['leases', 'release', 'order-8', '--force'])).exitCode).toBe(2);
  expect((await shop.run(['leases', 'release', 'order-8', '--force', '--yes'])).exitCode).toBe(0);
  const run = await holder.checkpoints?.load('order-8');
  const fence = typeof lease === 'object' ? lease.fence : undefined;
  // Whoever had it saves nothing more.
  if (run) expect(await holder.checkpoints?.saveIfLeased?.('order-8', run, 'somebody', fence)).toBe(false);
  expect((await shop.run(['leases', 'release', 'order-8'])).exitCode).toBe(3);
  await holder.close?.();

  const child = startLousho(['approvals', 'approve', await waitingId(shop)], {
    cwd: shop.folder,
    env: { SLOW_TOOL: 'charge_card' },
  });
  const exit = once(child, 'exit');
  while (shop.effects().length === 0) await new Promise((resolve) => setImmediate(resolve));
  child.kill('SIGKILL');
  await exit;
  expect((await shop.run(['leases', 'release', 'order-7', '--json'])).exitCode).toBe(0);
  // It may have happened: an approved call that was cut off never runs again.
  expect((await shop.run(['resume', 'order-7'])).exitCode).toBe(0);
  expect(shop.effects()).toHaveLength(1);
});

async function givenRuns(kind: StoreKind, folder: string): Promise<void> {
  await openShop(kind, folder);
  const store = kind.open(folder);
  const finished = await store.checkpoints?.load('order-9');
  if (!finished) throw new Error('no run');
  for (let run = 0; run < RUNS; run += 1) await store.checkpoints?.save(`old-${run}`, finished);
  await store.close?.();
}

async function idsOf({ checkpoints }: AgentStore): Promise<readonly string[]> {
  return ((await checkpoints?.list?.()) ?? []).map(({ sessionId }) => sessionId).sort();
}

async function contentOf(store: AgentStore) {
  const runs: Record<string, unknown> = {};
  for (const id of await idsOf(store)) runs[id] = await store.checkpoints?.history?.(id);
  return { runs, approvals: await store.approvals?.list() };
}
