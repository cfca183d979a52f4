/** The stores that commands are tried on, with runs of a small shop in them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createAgent, defineTool, PropagatingToolError } from '@lousho/core';
import type { AgentStore, Clock } from '@lousho/contract';
import { fileStore } from '@lousho/store-file';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel, testPorts, type ManualClock, type MockResponse } from '@lousho/testing';
import { afterAll } from 'vitest';

export interface StoreKind {
  readonly name: string;
  /** What `--store` takes, relative to the folder. */
  readonly spec: string;
  open(folder: string, clock?: Clock): AgentStore;
}

export const storeKinds: readonly StoreKind[] = [
  {
    name: 'sqlite',
    spec: 'sqlite:./runs.db',
    open: (folder, clock) => new SqliteStore(path.join(folder, 'runs.db'), portsOf(clock)),
  },
  {
    name: 'file',
    spec: 'file:./runs',
    open: (folder, clock) => fileStore(path.join(folder, 'runs'), portsOf(clock)),
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

export const charge = defineTool({
  name: 'charge_card',
  description: 'Charges a card.',
  input: { type: 'object' },
  needsApproval: true,
  execute: async () => ({ charged: true }),
});
export const ship = defineTool({
  name: 'ship',
  description: 'Ships an order.',
  input: { type: 'object' },
  execute: async () => {
    throw new PropagatingToolError('the carrier is down');
  },
});
export const lookUp = defineTool({
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

/** `order-7` waits for a decision, `order-8` failed, `order-9` is finished. */
export async function openShop(kind: StoreKind, folder: string): Promise<void> {
  const store = kind.open(folder);
  const pay: MockResponse = {
    text: 'I charge the card.',
    toolCalls: [{ name: 'charge_card', args: { cents: 4_200, card: 'visa' } }],
  };
  const look: MockResponse = { toolCalls: [{ name: 'look_up', args: { order: 7 } }] };
  await shop(store, [look, pay]).send('Charge order 7.', { sessionId: 'order-7' });
  await shop(store, [{ toolCalls: [{ name: 'ship', args: { order: 8 } }] }])
    .send('Ship order 8.', { sessionId: 'order-8' })
    .catch(() => undefined);
  await shop(store, [look, 'It is a book and a pen.']).send('What is order 9?', { sessionId: 'order-9' });
  await store.close?.();
}

function portsOf(clock: Clock | undefined) {
  return clock === undefined ? {} : { ports: { clock } };
}
