/** The disk is full, or has no room for another name: what was stored stays, the save says so, and it goes on when there is room. */
import fs from 'node:fs';
import path from 'node:path';
import type { FullAgentStore } from '@lousho/contract';
import { beforeAll, describe, expect, it } from 'vitest';
import { requireTools } from '../src/fault-tools.ts';
import { findStepLosses, type StepLine } from '../src/step-log.ts';
import { mountMemoryDisk } from '../src/test-disk.ts';
import { openStore, type StoreKind } from '../workers/open-store.mjs';
import { firstStep, nextStep } from '../workers/stepped-run.mjs';
import { carelessStore } from './support/careless-store.ts';

beforeAll(() => requireTools('mount'));

describe.each<StoreKind>(['file', 'sqlite'])('%s', (kind) => {
  it.each([
    ['bytes', 'size=1m', fillWithBytes],
    ['names', 'size=4m,nr_inodes=40', fillWithNames],
  ] as const)(
    'loses nothing on a disk that has no room for more %s, and goes on when it has',
    async (_, options, fill) => {
      const folder = mountMemoryDisk(options);
      const store = openStore({ kind, folder });
      const { losses, codes, saved } = await saveOnFullDisk(store, folder, fill);
      expect(losses).toEqual([]);
      // SQLite needs no new name for a save.
      if (kind === 'file' || fill === fillWithBytes) expect(codes).not.toEqual([]);
      for (const code of codes) expect(code).toBe('LOUSHO_STORE_WRITE_FAILED');
      expect(saved).toBeGreaterThan(3);
      await store.close();
      // What is on the disk says the same to whoever opens it next.
      const next = openStore({ kind, folder });
      expect((await next.checkpoints.list()).filter(({ error }) => error !== undefined)).toEqual([]);
      await next.close();
    },
  );
});

it('notices a store that writes over what it has', async () => {
  const folder = mountMemoryDisk('size=1m');
  const { losses } = await saveOnFullDisk(carelessStore(folder), folder, fillWithBytes);
  expect(losses).not.toEqual([]);
});

/** Saves, fills the disk, tries to save more, makes room again and goes on. Looks at what is stored after each step. */
async function saveOnFullDisk(
  store: FullAgentStore,
  folder: string,
  fill: (folder: string) => void,
): Promise<{
  readonly losses: readonly string[];
  readonly codes: readonly string[];
  readonly saved: number;
}> {
  const log: StepLine[] = [];
  const losses: string[] = [];
  const write = (line: Omit<StepLine, 'atMs'>): void => void log.push({ atMs: 0, ...line });
  async function save(id: string): Promise<void> {
    const unread = await findStepLosses(store, log);
    if (unread.length > 0) return void losses.push(...unread);
    const next = nextStep((await store.checkpoints.load(id)) ?? firstStep());
    // Larger than what a page that is begun already has left.
    const large = { ...next, businessState: 'x'.repeat(9_000) + next.stepIndex };
    write({ kind: 'asked', id, step: next.stepIndex });
    try {
      await store.checkpoints.save(id, large);
      write({ kind: 'acknowledged', id, step: next.stepIndex });
    } catch (error) {
      write({ kind: 'rejected', id, step: next.stepIndex, code: String((error as { code?: unknown }).code) });
    }
  }
  for (const id of ['order-7', 'order-7', 'order-8']) await save(id);
  fill(folder);
  for (const id of ['order-7', 'order-8', 'order-9', 'order-7']) await save(id);
  fs.rmSync(path.join(folder, 'filler'), { recursive: true });
  for (const id of ['order-7', 'order-8', 'order-9']) await save(id);
  losses.push(...(await findStepLosses(store, log)));
  const rejected = log.filter(({ kind }) => kind === 'rejected');
  return {
    losses,
    codes: rejected.map(({ code = '' }) => code),
    saved: log.filter(({ kind }) => kind === 'acknowledged').length,
  };
}

function fillWithBytes(folder: string): void {
  fs.mkdirSync(path.join(folder, 'filler'));
  for (const size of [65_536, 4_096, 1])
    untilFull(() => fs.appendFileSync(path.join(folder, 'filler', 'bytes'), Buffer.alloc(size)));
}

function fillWithNames(folder: string): void {
  fs.mkdirSync(path.join(folder, 'filler'));
  let count = 0;
  untilFull(() => fs.writeFileSync(path.join(folder, 'filler', `name-${(count += 1)}`), ''));
}

function untilFull(write: () => void): void {
  try {
    for (;;) write();
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC');
  }
}
