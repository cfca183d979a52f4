/** A sub-agent that works elsewhere, as its lead's runs see it: no tools, no model, and never another one after a deploy. */
import type { LLMProvider, RemoteAgent, SessionStore } from '@lousho/contract';
import { fixedAgent, resolveAgent, type ResolvedSubAgent } from './resolved-agent.ts';

export function remoteSubAgent(
  name: string,
  remote: RemoteAgent,
  taskRecords: SessionStore | undefined,
): ResolvedSubAgent {
  return {
    source: fixedAgent({ ...resolveAgent({ name, provider: elsewhere, tools: [], taskRecords }), remote }),
    // How long it may work is the remote's to say; here each pause of it is a step.
    engine: (leads) => ({
      ...leads,
      sessionLimits: undefined,
      maxSteps: Number.MAX_SAFE_INTEGER,
      limits: {},
    }),
  };
}

/** Named by traces. */
const elsewhere: LLMProvider = {
  providerId: 'lousho',
  modelId: 'remote-agent',
  generate: () => Promise.reject(new Error('Invariant: a remote agent was asked as a model')),
};
