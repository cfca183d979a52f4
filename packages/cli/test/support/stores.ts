/** The stores that commands are tried on, with runs of a small shop in them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createAgent, defineTool, PropagatingToolError } from '@lousho/core';
import type { AgentStore } from '@lousho/contract';
import { fileStore } from '@lousho/store-file';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel, testPorts, type ManualClock, type MockResponse } from '@lousho/testing';
import { afterAll } from 'vitest';

export interface StoreKind {
  readonly name: string;
  /** What `--store` takes, relative to the folder. */
  readonly spec: string;
  open(folder: string): AgentStore;
}

export const storeKinds: readonly StoreKind[] = [
  {
    name: 'sqlite',
    spec: 'sqlite:./runs.db',
    open: (folder) => new SqliteStore(path.join(folder, 'runs.db')),
  },
  {
    name: 'file',
    spec: 'file:./runs',
    open: (folder) => fileStore(path.join(folder, 'runs')),
  },
];

const folders: string[] = [];

/** Removed after the tests of the file. */
export function newFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-cli-'));
  folders.push(folder);
  return folder;
}

afterAll(() => {
  for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true });
});

const charge = defineTool({
  name: 'charge_card',
  description: 'Charges a card.',
  input: { type: 'object' },
  needsApproval: true,
  execute: async () => ({ charged: true }),
});
const ship = defineTool({
  name: 'ship',
  description: 'Ships an order.',
  input: { type: 'object' },
  execute: async () => {
    throw new PropagatingToolError('the carrier is down');
  },
});
const lookUp = defineTool({
  name: 'look_up',
  description: 'Looks an order up.',
  input: { type: 'object' },
  execute: async () => ({ order: 7, items: ['book', 'pen'] }),
});

export function shop(store: AgentStore, script: readonly MockResponse[], clock?: ManualClock) {
  return createAgent({
    name: 'shop',
    instructions: 'You run a shop.',
    provider: mockModel(script),
    tools: [charge, ship, lookUp],
    store,
    ...(clock === undefined ? undefined : { ports: testPorts(clock) }),
  });
}

/** `order-7` waits for a decision, `order-8` failed, `order-9` is finished, and so is a turn of the session `chat`. */
export async function openShop(kind: StoreKind, folder: string, clock?: ManualClock): Promise<void> {
  const store = kind.open(folder);
  await fillShop(store, clock);
  await store.close?.();
}

async function fillShop(store: AgentStore, clock?: ManualClock): Promise<void> {
  const pay: MockResponse = {
    text: 'I charge the card.',
    toolCalls: [{ name: 'charge_card', args: { cents: 4_200, card: 'visa' } }],
  };
  const look: MockResponse = { toolCalls: [{ name: 'look_up', args: { order: 7 } }] };
  await shop(store, [look, pay], clock).send('Charge order 7.', { sessionId: 'order-7' });
  await shop(store, [{ toolCalls: [{ name: 'ship', args: { order: 8 } }] }], clock)
    .send('Ship order 8.', { sessionId: 'order-8' })
    .catch(() => undefined);
  await shop(store, [look, 'It is a book and a pen.'], clock).send('What is order 9?', {
    sessionId: 'order-9',
  });
  await shop(store, ['Hello Ada.'], clock).session({ id: 'chat' }).send('Hello.');
}
