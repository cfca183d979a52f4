/** What `createAgent` takes, and what it resolves to. */
import {
  CONTRACT_VERSION,
  ConfigurationError,
  requireKnownOptions,
  type AgentStore,
  type ApprovalDecision,
  type ApprovalRequest,
  type ApprovalStore,
  type CheckpointStore,
  type Dynamic,
  type HandoffTarget,
  type LLMProvider,
  type ProviderTool,
  type SessionStore,
  type SubAgent,
  type Tool,
  type OptionNames,
} from '@lousho/contract';
import type { EngineOptions } from '@lousho/executor';
import {
  DEFAULT_MAX_SUBAGENT_DEPTH,
  conversationSource,
  askQuestionTool,
  ephemeralApprovals,
  requireHandoffs,
  requireSubAgents,
  requireWholeNumber,
  resolveEngine,
  type AgentSource,
  type Engine,
  refuseOption,
} from '@lousho/executor/wiring';
import { sessionParts, type SessionParts } from './session-parts.ts';

export interface AgentConfig extends EngineOptions {
  readonly provider: LLMProvider;
  /** Default `'agent'`. Two agents on one store need two names. */
  readonly name?: string | undefined;
  readonly instructions?: Dynamic<string> | undefined;
  readonly model?: Dynamic<string> | undefined;
  readonly tools?: Dynamic<readonly Tool[]> | undefined;
  readonly providerTools?: readonly ProviderTool[] | undefined;
  readonly store?: AgentStore | undefined;
  /** Adds the `task` tool, with which the model gives work to them. Each runs in a conversation of its own, as durable as the agent's. */
  readonly subagents?: readonly SubAgent[] | undefined;
  /** How deep `task` may nest: 1 when only the agent itself delegates. Default 5. */
  readonly maxSubagentDepth?: number | undefined;
  /**
   * Adds a tool `handoff_to_<name>` for each: the model hands the conversation over, and that one answers from then on, in later runs of
   * the session too. It may hand over to each other of them, and back.
   */
  readonly handoffs?: readonly HandoffTarget[] | undefined;
  /** Of one run, default 5. */
  readonly maxHandoffs?: number | undefined;
  /** Adds the `ask_question` tool: the model asks a person, who answers with `agent.approvals.answer`. Default `false`. */
  readonly askQuestion?: boolean | undefined;
  /**
   * Decides pauses in code for `send`, `resume`, `runOnce` and after `approvals.resolve`; `stream` and `streamResolve` end at the pause.
   * `'defer'` leaves a call to a person. What it throws rejects the call; the approval then stays pending.
   */
  readonly approve?: Approve | undefined;
}
export type Approve = (request: ApprovalRequest) => ApproveOutcome | Promise<ApproveOutcome>;
export type ApproveOutcome = Pick<ApprovalDecision, 'approved' | 'note' | 'args' | 'answer' | 'by'> | 'defer';

/** The parts of an agent, every option checked. */
export interface AgentParts {
  readonly name: string;
  readonly checkpoints: CheckpointStore | undefined;
  /** Where pauses go; memory of this agent when it has no store at all. */
  readonly approvals: ApprovalStore | undefined;
  readonly sessions: SessionParts;
  /** Where what was said in tasks of sub-agents is kept. */
  readonly taskRecords: SessionStore | undefined;
  readonly source: AgentSource;
  readonly engine: Engine;
  readonly approve: Approve | undefined;
  readonly store: AgentStore | undefined;
  readonly options: EngineOptions;
}

const everyOption: OptionNames<AgentConfig> = {
  provider: true,
  name: true,
  instructions: true,
  model: true,
  tools: true,
  providerTools: true,
  store: true,
  subagents: true,
  maxSubagentDepth: true,
  handoffs: true,
  maxHandoffs: true,
  askQuestion: true,
  approve: true,
  approvalTtlMs: true,
  hooks: true,
  onEvent: true,
  toolConcurrency: true,
  maxSteps: true,
  limits: true,
  maxConcurrentTasks: true,
  awaitBackgroundOnFinish: true,
  modelSettings: true,
  retry: true,
  fallbackModels: true,
  onAgentDrift: true,
  sandboxExecute: true,
  lease: true,
  telemetry: true,
  ports: true,
};

/** @throws synchronously LOUSHO_CONFIG_INVALID, LOUSHO_STORE_VERSION_UNSUPPORTED */
export function resolveAgentConfig(config: AgentConfig): AgentParts {
  if (typeof config !== 'object' || config === null)
    refuseOption('config', config, 'an object with a provider');
  requireKnownOptions('', config, everyOption);
  const { provider, name = 'agent', store } = config;
  if (typeof provider !== 'object' || provider === null || typeof provider.generate !== 'function') {
    refuseOption('provider', provider, 'an LLMProvider, which has a generate method');
  }
  if (typeof name !== 'string' || name === '') refuseOption('name', name, 'a text that is not empty');
  if (store !== undefined) requireStore(store);
  if (config.providerTools !== undefined && !Array.isArray(config.providerTools))
    refuseOption('providerTools', config.providerTools, 'a list of provider tools');
  if (config.approve !== undefined && typeof config.approve !== 'function')
    refuseOption('approve', config.approve, 'a function');
  if (config.askQuestion !== undefined && typeof config.askQuestion !== 'boolean')
    refuseOption('askQuestion', config.askQuestion, 'true or false');
  requireSubAgents(config);
  requireHandoffs({ ...config, name });
  const { maxSubagentDepth: levelsBelow = DEFAULT_MAX_SUBAGENT_DEPTH, askQuestion = false } = config;
  requireWholeNumber('maxSubagentDepth', levelsBelow, 0);
  const ownTools = askQuestion ? [askQuestionTool()] : [];
  const sessions = sessionParts(store);
  // A store without a part for them keeps none: among checkpoints they would be in the way.
  const taskRecords = store === undefined ? sessions.transcripts : store.sessions;
  return {
    name,
    checkpoints: store?.checkpoints,
    approvals: store === undefined ? ephemeralApprovals() : store.approvals,
    sessions,
    taskRecords,
    source: conversationSource({ ...config, name, ownTools, levelsBelow, taskRecords }, config),
    engine: resolveEngine(config),
    approve: config.approve,
    store,
    options: config,
  };
}

export function requireStore(store: AgentStore): void {
  if (typeof store !== 'object' || store === null)
    refuseOption('store', store, 'an AgentStore, for example memoryStore()');
  const { contractVersion = CONTRACT_VERSION } = store;
  if (contractVersion > CONTRACT_VERSION) {
    throw new ConfigurationError('LOUSHO_STORE_VERSION_UNSUPPORTED', {
      found: contractVersion,
      supported: CONTRACT_VERSION,
    });
  }
  if (store.checkpoints === undefined && store.approvals === undefined && store.sessions === undefined) {
    refuseOption(
      'store',
      store,
      'an AgentStore with a checkpoints part; a checkpoint store alone goes in as { checkpoints: store }',
    );
  }
  for (const part of ['checkpoints', 'approvals', 'sessions'] as const)
    if (store[part] !== undefined) requireMethods(part, store[part]);
}

/** What each part of a store must have; the rest is optional and detected. */
const requiredMethods = {
  checkpoints: ['save', 'load', 'delete'],
  approvals: ['save', 'load', 'list', 'delete'],
  sessions: ['load', 'saveIfRevision', 'delete'],
} as const;

function requireMethods(part: keyof typeof requiredMethods, methods: unknown): void {
  for (const name of requiredMethods[part]) {
    const method: unknown = (methods as Record<string, unknown> | null)?.[name];
    if (typeof method !== 'function') refuseOption(`store.${part}.${name}`, method, 'a function');
  }
}
