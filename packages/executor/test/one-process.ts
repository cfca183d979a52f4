/** One process of a story that crashes: an agent on its view of the store, and a driver that brings the run to its end whatever happened before. */
import {
  SessionAwaitingApprovalError,
  isSDKError,
  type AgentInput,
  type AgentRun,
  type AgentStore,
  type ApprovalDecision,
  type ApprovalKind,
  type ExecutionResult,
  type LLMProvider,
  type Ports,
  type Tool,
} from '@lousho/contract';
import {
  AgentExecutor,
  ToolRegistry,
  resumeAfterApproval,
  type EngineOptions,
  type ExecuteOptions,
} from '../src/index.ts';
import { need, RUN_ID } from './support.ts';

export interface ProcessSetup {
  readonly store: AgentStore;
  readonly ports: Ports;
  readonly provider: LLMProvider;
  readonly tools: readonly Tool[];
  readonly options?: EngineOptions;
}
export type Decide = (toolName: string, kind?: ApprovalKind) => Omit<ApprovalDecision, 'id'>;

/** More rounds than any story needs. */
const MAX_ROUNDS = 50;

export class OneProcess {
  constructor(readonly setup: ProcessSetup) {}

  send(input: AgentInput, more: Partial<ExecuteOptions> = {}): Promise<ExecutionResult> {
    return AgentExecutor.execute({ ...this.#options(), input, ...more });
  }

  stream(input: AgentInput, more: Partial<ExecuteOptions> = {}): AgentRun {
    return AgentExecutor.stream({ ...this.#options(), input, ...more });
  }

  decide(decision: ApprovalDecision): Promise<ExecutionResult> {
    const { store, ports, provider, tools, options } = this.setup;
    return resumeAfterApproval(
      decision,
      need(store.approvals),
      new ToolRegistry(tools),
      provider,
      { ...options, ports },
      store.checkpoints,
    );
  }

  /** Sends until the run is over. What waits for a person is decided; whatever an earlier process got done is not done again. */
  async toEnd(
    input: AgentInput,
    more: Partial<ExecuteOptions> = {},
    decide: Decide = () => ({ approved: true }),
  ): Promise<ExecutionResult> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const waiting = await this.#sendOrWaiting(input, more);
      if (!Array.isArray(waiting)) return waiting as ExecutionResult;
      for (const id of waiting as readonly string[]) await this.#decideIfOpen(id, decide);
    }
    throw new Error('The run does not end.');
  }

  async #sendOrWaiting(
    input: AgentInput,
    more: Partial<ExecuteOptions>,
  ): Promise<ExecutionResult | readonly string[]> {
    try {
      const result = await this.send(input, more);
      return result.finishReason === 'awaiting-approval' ? result.approvalIds : result;
    } catch (error) {
      if (error instanceof SessionAwaitingApprovalError) return error.approvalIds;
      throw error;
    }
  }

  async #decideIfOpen(id: string, decide: Decide): Promise<void> {
    const record = await this.setup.store.approvals?.load(id);
    try {
      await this.decide({ ...decide(record?.toolName ?? '', record?.kind), id });
    } catch (error) {
      if (!isSDKError(error, 'LOUSHO_APPROVAL_DECIDED')) throw error;
    }
  }

  #options(): Omit<ExecuteOptions, 'input'> {
    const { store, ports, provider, tools, options } = this.setup;
    return {
      ...options,
      agent: {},
      provider,
      ports,
      toolRegistry: new ToolRegistry(tools),
      checkpointStore: store.checkpoints,
      approvalStore: store.approvals,
      sessionId: RUN_ID,
    };
  }
}
