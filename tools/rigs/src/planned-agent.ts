/**
 * An agent whose model reads in the user's message what it has to say: a run goes on alike in every process, with nothing to remember.
 *
 * `'@look @charge > Done.'`: the first response asks for two calls, the second is a text. `'!'` is a provider that is down.
 */
import {
  LLMProviderError,
  defineTool,
  textOf,
  type AgentStore,
  type AssistantPart,
  type JsonObject,
  type LLMProvider,
  type Message,
  type Ports,
  type Tool,
} from '@lousho/contract';
import { createAgent, type Agent } from '@lousho/core';

/** What each word of a plan calls. */
const calls: { readonly [word: string]: { readonly name: string; readonly args: JsonObject } } = {
  look: { name: 'look', args: { page: 1 } },
  charge: { name: 'charge', args: { cents: 500 } },
  ship: { name: 'ship', args: { to: 'Porto' } },
  halt: { name: 'halt', args: {} },
  refund: { name: 'refund', args: { cents: 500 } },
  ask: { name: 'ask_question', args: { question: 'Where to?', options: ['Porto', 'Lisbon'] } },
  billing: { name: 'handoff_to_billing', args: {} },
  mail: { name: 'task', args: { agent: 'mailer', prompt: '@email > Mailed.' } },
  cargo: { name: 'task', args: { agent: 'porter', prompt: '@ship > Shipped.' } },
  email: { name: 'email', args: { to: 'ann@example.com' } },
};

export interface PlannedAgent {
  readonly agent: Agent;
  /** Each call that ran, as `name` and its arguments. */
  readonly ran: readonly string[];
}
export interface PlannedOptions {
  readonly store: AgentStore;
  readonly ports: Ports;
  /** `ship` never comes back: its process dies in it. */
  readonly diesShipping?: boolean;
  /** Called by `halt`. */
  readonly onHalt?: () => void;
}

export function plannedAgent({ store, ports, diesShipping = false, onHalt }: PlannedOptions): PlannedAgent {
  const ran: string[] = [];
  const tool = (name: string, work: () => unknown, more: Partial<Tool> = {}): Tool =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input: { type: 'object' },
      execute(args: JsonObject) {
        ran.push(`${name} ${JSON.stringify(args)}`);
        return work();
      },
      ...more,
    });
  const ship = tool('ship', () => (diesShipping ? new Promise(() => undefined) : 'shipped'), {
    onInterrupted: 'never',
  });
  const refund = tool('refund', () => 'refunded', { needsApproval: true });
  const agent = createAgent({
    ...{ store, ports, name: 'clerk', instructions: 'Serve.', askQuestion: true },
    provider: plannedModel('clerk-model'),
    tools: [
      tool('look', () => ({ found: ['a', 'b'] })),
      tool('charge', () => 'charged', { needsApproval: true }),
      refund,
      ship,
      tool('halt', () => onHalt?.()),
    ],
    subagents: [
      {
        name: 'mailer',
        description: 'Sends mail.',
        provider: plannedModel('mailer-model'),
        tools: [tool('email', () => 'sent', { needsApproval: true })],
      },
      {
        name: 'porter',
        description: 'Ships.',
        provider: plannedModel('porter-model'),
        tools: [ship],
      },
    ],
    handoffs: [
      {
        name: 'billing',
        description: 'Knows about money.',
        instructions: 'Count.',
        provider: plannedModel('billing-model'),
        tools: [refund],
      },
    ],
    retry: { maxRetries: 0 },
  });
  return { agent, ran };
}

function plannedModel(modelId: string): LLMProvider {
  return {
    providerId: 'planned',
    modelId,
    async generate({ messages }) {
      const { step, index } = planOf(messages);
      if (step === '!') throw new LLMProviderError('down', { kind: 'api', status: 503, retryable: true });
      const words = step.split(' ').filter((word) => word.startsWith('@'));
      const content: AssistantPart[] = words.map((word, at) => callOf(word.slice(1), `call_${index}_${at}`));
      return {
        message: { role: 'assistant', content: words.length === 0 ? answer(step) : content },
        finishReason: words.length === 0 ? 'stop' : 'tool-calls',
        usage: { inputTokens: 10, outputTokens: 5, cachedInputTokens: 2, costUsd: 0.25 },
      };
    },
  };
}

/** What is said now: as many steps of the plan are over as responses stand behind it. */
function planOf(messages: readonly Message[]): { readonly step: string; readonly index: number } {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const plan = messages[at];
  const index = messages.slice(at).filter(({ role }) => role === 'assistant').length;
  return { step: (plan === undefined ? '' : textOf(plan)).split(' > ')[index] ?? 'Nothing more.', index };
}

function callOf(word: string, toolCallId: string): AssistantPart {
  const call = calls[word];
  if (call === undefined) throw new Error(`No plan has a word "${word}".`);
  return { type: 'tool-call', toolCallId, toolName: call.name, args: call.args };
}

/** With what a provider wants back: a signature, and an item of its own. */
function answer(text: string): AssistantPart[] {
  return [
    { type: 'reasoning', text: '', providerMetadata: { planned: { signature: 'c2ln' } } },
    { type: 'text', text },
    { type: 'custom', kind: 'planned.item', data: { a: [1, null] } },
  ];
}
