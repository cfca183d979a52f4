/** A shop whose clerk hands customers over to billing, and to the boss when a person agrees: what tests of handoffs begin with. */
import { resultOf, type Checkpoint, type HandoffTarget, type Message } from '@lousho/contract';
import { mockModel, type MockModel, type MockResponse } from '@lousho/testing';
import { gatedTool, spyTool } from './tools.ts';
import type { ProcessAgentConfig } from './world.ts';

export const toBilling: MockResponse = { toolCalls: [{ name: 'handoff_to_billing', id: 'call_handoff' }] };

export interface Shop {
  readonly clerk: MockModel;
  readonly billing: MockModel;
  readonly look: ReturnType<typeof spyTool>;
  readonly refund: ReturnType<typeof spyTool>;
  readonly pay: ReturnType<typeof gatedTool>;
  readonly config: ProcessAgentConfig & { readonly handoffs: readonly HandoffTarget[] };
}

/** `clerk` has the tools `look` and (gated) `pay`, `billing` has `refund` and `look`; each has a model of its own. */
export function givenShop(
  scripts: { readonly clerk: readonly MockResponse[]; readonly billing?: readonly MockResponse[] },
  more: Partial<Omit<ProcessAgentConfig, 'handoffs'>> = {},
): Shop {
  const clerk = mockModel(scripts.clerk, { modelId: 'clerk-model' });
  const billing = mockModel(scripts.billing ?? ['Billing here.'], { modelId: 'billing-model' });
  const look = spyTool('look');
  const refund = spyTool('refund');
  const pay = gatedTool('pay');
  return {
    ...{ clerk, billing, look, refund, pay },
    config: {
      name: 'clerk',
      provider: clerk,
      instructions: 'Serve.',
      tools: [look.tool, pay.tool],
      handoffs: [
        {
          name: 'billing',
          description: 'Knows about money.',
          provider: billing,
          instructions: 'Count.',
          tools: [refund.tool, look.tool],
        },
      ],
      ...more,
    },
  };
}

/** Who answered, and what stands at the head of its transcript. */
export function whoAnswers({ activeAgent, messages }: Pick<Checkpoint, 'activeAgent' | 'messages'>): string {
  const [first] = messages;
  return `${activeAgent ?? 'the agent itself'}: ${first?.role === 'system' ? first.content : 'nothing'}`;
}

/** Ids of the calls of all handoffs that took place, in order. */
export function handoffCalls(messages: readonly Message[]): readonly string[] {
  return messages.flatMap((message) => {
    const result = resultOf(message);
    return result?.toolName.startsWith('handoff_to_') === true && result.kind === undefined
      ? [result.toolCallId]
      : [];
  });
}
