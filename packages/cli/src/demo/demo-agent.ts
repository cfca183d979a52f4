/** The agent of `lousho demo`: it charges, ships and gives money back. Its model answers from a script, its tools write into a ledger. */
import fs from 'node:fs';
import path from 'node:path';
import { platformClock, type ToolContext } from '@lousho/contract';
import type { Agent } from '@lousho/core';
import type { MockResponse } from '@lousho/testing';

export const DEMO_RUN = 'order-7';
export const DEMO_INPUT = 'Charge order 7, ship it, and give 5.00 back for the wait.';

const MODEL_MS = 250;
const TOOL_MS = 400;

/** A line of the ledger: what really happened, whoever remembers it. */
export type LedgerRow =
  | { readonly type: 'answered'; readonly step: number; readonly process: number }
  | {
      readonly type: 'began' | 'done';
      readonly tool: string;
      readonly key: string;
      readonly process: number;
    };

export interface DemoAgentOptions {
  /** Holds the store and the ledger. */
  readonly folder: string;
  /** Told before the tool does anything. */
  readonly onToolBegins?: ((tool: string) => void) | undefined;
}

export async function demoAgent({ folder, onToolBegins }: DemoAgentOptions): Promise<Agent> {
  const [{ createAgent, defineTool }, { fileStore }, { mockModel }] = await Promise.all([
    import('@lousho/core'),
    import('@lousho/store-file'),
    import('@lousho/testing'),
  ]);
  const tool = (name: string, description: string, needsApproval = false) =>
    defineTool({
      name,
      description,
      needsApproval,
      input: { type: 'object' },
      execute: async (_args, { idempotencyKey: key }: ToolContext) => {
        note(folder, { type: 'began', tool: name, key, process: process.pid });
        onToolBegins?.(name);
        await pause(TOOL_MS);
        // The system behind the tool knows the key: the same call twice is one charge.
        if (!readLedger(folder).some((row) => row.type === 'done' && row.key === key))
          note(folder, { type: 'done', tool: name, key, process: process.pid });
        return { ok: true };
      },
    });
  return createAgent({
    name: 'shop',
    provider: mockModel(script(folder), { answerBy: 'step' }),
    tools: [
      tool('charge_card', 'Charges the card of the customer.'),
      tool('ship_order', 'Hands the order to the carrier.'),
      tool('refund', 'Gives money back.', true),
    ],
    store: fileStore(storeFolder(folder)),
  });
}

export function storeFolder(folder: string): string {
  return path.join(folder, 'store');
}

export function readLedger(folder: string): readonly LedgerRow[] {
  const file = ledgerFile(folder);
  if (!fs.existsSync(file)) return [];
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as LedgerRow);
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void platformClock.setTimer(resolve, ms));
}

function script(folder: string): readonly MockResponse[] {
  const responses: readonly MockResponse[] = [
    {
      text: 'I charge the card.',
      toolCalls: [{ name: 'charge_card', args: { order: 7, cents: 4_200 } }],
    },
    { text: 'It is paid: I ship it.', toolCalls: [{ name: 'ship_order', args: { order: 7 } }] },
    { text: 'And 5.00 back.', toolCalls: [{ name: 'refund', args: { order: 7, cents: 500 } }] },
    'Order 7 is paid and on its way, and 5.00 were given back.',
  ];
  return responses.map((response, index) => async () => {
    await pause(MODEL_MS);
    note(folder, { type: 'answered', step: index + 1, process: process.pid });
    return response;
  });
}

function note(folder: string, row: LedgerRow): void {
  fs.appendFileSync(ledgerFile(folder), `${JSON.stringify(row)}\n`);
}

function ledgerFile(folder: string): string {
  return path.join(folder, 'ledger.jsonl');
}
