/** An agent over a store alone, for what needs no model: forks, and dropping what is unfinished. */
import { LLMProviderError, type AgentStore } from '@lousho/contract';
import type { Agent } from '@lousho/core';

/** It executes nothing: whatever it would be asked to, fails. */
export async function storeAgent(store: AgentStore): Promise<Agent> {
  const { createAgent } = await import('@lousho/core');
  return createAgent({
    store,
    provider: {
      providerId: 'none',
      modelId: 'none',
      async generate() {
        throw new LLMProviderError('The command line has no model.', { kind: 'config', retryable: false });
      },
    },
  });
}
