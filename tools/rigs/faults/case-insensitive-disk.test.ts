/** A disk that does not tell `Order-7` from `order-7`: two runs are two runs all the same, in every part of a store. */
import fs from 'node:fs';
import path from 'node:path';
import type { ApprovalRecord, FullAgentStore, SessionRecord } from '@lousho/contract';
import { beforeAll, describe, expect, it } from 'vitest';
import { requireTools } from '../src/fault-tools.ts';
import { LoopDisk } from '../src/test-disk.ts';
import { openStore, type StoreKind } from '../workers/open-store.mjs';
import { firstStep, nextStep } from '../workers/stepped-run.mjs';
import { carelessStore } from './support/careless-store.ts';

const IDS = ['order-7', 'Order-7', 'ORDER-7', 'oRDER-7'];

beforeAll(() => requireTools('mount', 'losetup', 'mkfs.ntfs', 'lowntfs-3g'));

describe.each<StoreKind>(['file', 'sqlite'])('%s', (kind) => {
  it('keeps ids apart that differ in case alone', async () => {
    const { folder } = givenDisk();
    const store = openStore({ kind, folder });
    await saveAll(store);
    expect(await stepsOf(store)).toEqual(IDS.map((_, index) => index + 1));
    const leases = await Promise.all(
      IDS.map((id) => store.checkpoints.acquireLease(id, `owner of ${id}`, 30_000)),
    );
    expect(leases).not.toContain(false);
    for (const id of IDS) await store.approvals.save(approval(id));
    for (const id of IDS) expect(await store.sessions.saveIfRevision(session(id), 0)).toBe(true);
    await store.checkpoints.delete('Order-7');
    await store.approvals.delete('Order-7');
    await store.sessions.delete('Order-7');
    await store.close();

    const reopened = openStore({ kind, folder });
    expect(await stepsOf(reopened)).toEqual([1, undefined, 3, 4]);
    const left = IDS.filter((id) => id !== 'Order-7').sort();
    expect((await reopened.checkpoints.list()).map(({ sessionId }) => sessionId).sort()).toEqual(left);
    expect((await reopened.approvals.list()).map(({ id }) => id).sort()).toEqual(left);
    expect([...((await reopened.sessions.list?.()) ?? [])].sort()).toEqual(left);
    for (const id of left) {
      expect((await reopened.sessions.load(id))?.businessState).toBe(id);
      expect((await reopened.approvals.load(id))?.toolCallId).toBe(id);
    }
    await reopened.close();
  });
});

it('notices a store that names its files like the ids', async () => {
  const store = carelessStore(givenDisk().folder);
  await saveAll(store);
  expect(await stepsOf(store)).not.toEqual(IDS.map((_, index) => index + 1));
});

function givenDisk(): LoopDisk {
  const disk = new LoopDisk('ntfs');
  fs.writeFileSync(path.join(disk.folder, 'Probe'), '');
  // Else nothing here would show anything.
  expect(fs.existsSync(path.join(disk.folder, 'probe'))).toBe(true);
  return disk;
}

/** The first id gets one step, the second two, and so on. */
async function saveAll({ checkpoints }: FullAgentStore): Promise<void> {
  for (const [index, id] of IDS.entries()) {
    let run = firstStep();
    for (let step = 0; step <= index; step += 1) await checkpoints.save(id, (run = nextStep(run)));
  }
}

async function stepsOf({ checkpoints }: FullAgentStore): Promise<(number | undefined)[]> {
  const loaded = await Promise.all(IDS.map((id) => checkpoints.load(id)));
  return loaded.map((checkpoint) => checkpoint?.stepIndex);
}

function approval(id: string): ApprovalRecord {
  return {
    ...{ id, kind: 'tool', runId: 'run-0001', agentName: 'agent', toolCallId: id, toolName: 'charge' },
    ...{ args: {}, argsHash: '', checkpointId: id, createdAt: '2026-01-01T00:00:00.000Z' },
  };
}

function session(id: string): SessionRecord {
  const { messages, usage, savedAt } = firstStep();
  return { id, revision: 0, turn: 0, messages, inputIds: [], usage, savedAt, businessState: id };
}
