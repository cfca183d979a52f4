/** Worlds with one flaw each, in the store or in the agent, and the promises by which it shows: the simulator's checker can fail. */
import type { AgentStore, Checkpoint, CheckpointStore, Lease, Ports } from '@lousho/contract';
import { createAgent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import type { SimulationOptions } from '@lousho/testing/simulation';

export interface FlawedWorld {
  readonly flaw: string;
  /** Beginnings of the promises, one of which must be broken. */
  readonly breaks: readonly string[];
  readonly options: Partial<SimulationOptions>;
}

type Checkpoints = CheckpointStore & Required<Pick<CheckpointStore, 'saveIfLeased' | 'acquireLease'>>;
type Flaw = (checkpoints: Checkpoints) => Partial<CheckpointStore>;

/** The memory store, but for these methods of its checkpoints. */
function store(flaw: Flaw): Partial<SimulationOptions> {
  return {
    createStore(ports: Ports): AgentStore {
      const whole = memoryStore({ ports });
      return { ...whole, checkpoints: { ...whole.checkpoints, ...flaw(whole.checkpoints) } };
    },
  };
}

type AgentConfig = Parameters<SimulationOptions['createAgent']>[0];

/** The agent, but for what is changed in its options. */
function agent(change: (config: AgentConfig) => object): Partial<SimulationOptions> {
  return { createAgent: (config) => createAgent({ ...config, ...change(config) }) };
}

/** `true` for one call in so many. */
function everyNth(count: number): () => boolean {
  let calls = 0;
  return () => (calls += 1) % count === 0;
}

export const flawedWorlds: readonly FlawedWorld[] = [
  {
    flaw: 'a store that ignores the fence',
    breaks: ['F3', 'G15'],
    options: store((checkpoints) => ({
      async saveIfLeased(id, checkpoint) {
        await checkpoints.save(id, checkpoint);
        return true;
      },
    })),
  },
  {
    flaw: 'a store that gives every lease to everybody',
    breaks: ['F3', 'G13', 'L1', 'G15', 'G16'],
    options: store(() => {
      let fence = 0;
      return { acquireLease: async (): Promise<Lease> => ({ fence: (fence += 1) }) };
    }),
  },
  {
    flaw: 'a store that loses a save now and then',
    breaks: ['C4', 'G15'],
    options: store((checkpoints) => {
      const isLost = everyNth(9);
      return {
        async saveIfLeased(id, checkpoint, owner, fence) {
          return isLost() ? true : checkpoints.saveIfLeased(id, checkpoint, owner, fence);
        },
      };
    }),
  },
  {
    flaw: 'a store that shows an older state now and then',
    breaks: ['C4'],
    options: store((checkpoints) => {
      const before = new Map<string, Checkpoint | null | undefined>();
      const isOld = everyNth(5);
      return {
        async load(id) {
          const old = before.get(id);
          const found = await checkpoints.load(id);
          before.set(id, found);
          return isOld() && old !== undefined ? old : found;
        },
      };
    }),
  },
  {
    flaw: 'a store that forgets results that settled early',
    breaks: ['C4', 'G15', 'G3', 'G7'],
    options: store((checkpoints) => ({
      saveIfLeased: (id, checkpoint, owner, fence) =>
        checkpoints.saveIfLeased(id, { ...checkpoint, settledResults: [] }, owner, fence),
    })),
  },
  {
    flaw: 'a store that lists nothing: nobody finds what was interrupted',
    breaks: ['G1', 'G16', 'G18'],
    options: store(() => ({ listHeaders: async () => [], list: async () => [] })),
  },
  {
    flaw: 'a store that deletes nothing',
    breaks: ['C4', 'G12', 'G28'],
    options: store(() => ({ delete: async () => undefined })),
  },
  {
    flaw: 'an inbox that loses what is put into it',
    breaks: ['G16'],
    options: {
      createStore(ports) {
        const whole = memoryStore({ ports });
        return { ...whole, approvals: { ...whole.approvals, save: async () => undefined } };
      },
    },
  },
  {
    flaw: 'an agent that takes no leases',
    breaks: ['G13', 'G15', 'G7', 'C4', 'G3', 'G4'],
    options: agent(() => ({ lease: false })),
  },
  {
    flaw: 'an agent that asks its model twice',
    breaks: ['G23'],
    options: agent(({ provider }) => ({
      telemetry: undefined,
      provider: {
        ...{ providerId: provider.providerId, modelId: provider.modelId },
        generate: (request: Parameters<typeof provider.generate>[0]) => provider.generate(request),
      },
    })),
  },
  {
    flaw: 'an agent that runs each call twice',
    breaks: ['G7'],
    options: agent(({ tools }) => ({
      tools: tools.map((tool) => ({
        ...tool,
        async execute(...call: Parameters<typeof tool.execute>) {
          await tool.execute(...call);
          return tool.execute(...call);
        },
      })),
    })),
  },
  {
    flaw: 'an agent that asks nobody',
    breaks: ['G8'],
    options: agent(({ tools }) => ({ tools: tools.map((tool) => ({ ...tool, needsApproval: false })) })),
  },
  {
    flaw: 'an agent that approves by itself with other arguments',
    breaks: ['G8', 'G10'],
    options: agent(({ tools }) => ({
      tools: tools.map((tool) => ({
        ...tool,
        execute: (args: unknown, ...rest: [Parameters<typeof tool.execute>[1]]) =>
          tool.execute({ ...(args as object), sneaky: true }, ...rest),
      })),
    })),
  },
  {
    flaw: 'an agent that makes results up',
    breaks: ['G1'],
    options: agent(({ tools }) => ({
      tools: tools.map((tool) => ({
        ...tool,
        execute: async (...call: Parameters<typeof tool.execute>) => ({
          made: await tool.execute(...call),
          up: true,
        }),
      })),
    })),
  },
];
