/** What `lousho init` writes. The agent runs as it is, without a key; it pauses before it gives much money back. */

export interface InitFile {
  readonly name: string;
  readonly text: string;
}

/** The agent first. */
export function initFiles(ending: 'ts' | 'mjs'): readonly InitFile[] {
  return [
    { name: `agent.${ending}`, text: agentText },
    { name: `lousho.config.${ending}`, text: configText(ending) },
  ];
}

const agentText = `import { pathToFileURL } from 'node:url';
import { createAgent, defineTool } from '@lousho/core';
import { fileStore } from '@lousho/store-file';
import { mockModel } from '@lousho/testing';
import { z } from 'zod';

const refund = defineTool({
  name: 'refund',
  description: 'Gives money back to the customer of an order.',
  input: z.object({ order: z.number(), cents: z.number() }),
  // More than 10.00 waits for a person.
  needsApproval: ({ cents }) => cents > 1000,
  execute: async ({ order, cents }, ctx) => {
    // Give ctx.idempotencyKey to the system that moves the money: after a crash the call may run again.
    return { order, refunded: cents, key: ctx.idempotencyKey };
  },
});

// Answers from a script, so that this runs without a key. A real model goes in its place, for example fromAiSdk(model).
const model = mockModel(
  [{ toolCalls: [{ name: 'refund', args: { order: 8, cents: 5000 } }] }, 'Order 8: 50.00 were given back.'],
  { answerBy: 'step' },
);

export const store = fileStore('./runs');
export const agent = createAgent({
  name: 'shop',
  instructions: 'You answer customers of a shop.',
  provider: model,
  tools: [refund],
  store,
});

// Only when this file is run, not when lousho.config imports it.
if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const result = await agent.send('Give the 50.00 of order 8 back.', {
    sessionId: 'order-8',
    inputId: 'order-8',
  });
  console.log(result.finishReason, result.text);
}
`;

function configText(ending: string): string {
  return `import { defineConfig } from '@lousho/cli';
import { agent, store } from './agent.${ending}';

export default defineConfig({ store, agents: { shop: agent } });
`;
}
