/** The part of `createAgent` of `@lousho/core` that a simulation drives. This package does not import it: it is given. */
import type {
  AgentEvent,
  AgentRun,
  AgentStore,
  ApprovalDecision,
  ApprovalRequest,
  ExecutionResult,
  HandoffTarget,
  LLMProvider,
  Ports,
  StoredError,
  SubAgent,
  Telemetry,
  Tool,
} from '@lousho/contract';

export interface SimulatedAgentConfig {
  readonly name: string;
  readonly provider: LLMProvider;
  readonly tools: readonly Tool[];
  readonly subagents: readonly SubAgent[];
  readonly handoffs: readonly HandoffTarget[];
  readonly store: AgentStore;
  readonly ports: Ports;
  readonly maxSteps: number;
  readonly toolConcurrency: number | 'unbounded';
  readonly telemetry: Telemetry;
  readonly onEvent: (event: AgentEvent) => void;
}
interface SimulatedSendOptions {
  readonly sessionId?: string | undefined;
  readonly inputId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}
/** Of a run, a `sessionId` is its id. */
interface SimulatedConversation {
  send(input: string, options: SimulatedSendOptions): Promise<ExecutionResult>;
  stream(input: string, options: SimulatedSendOptions): AgentRun;
}
interface SimulatedPendingRun {
  readonly sessionId: string;
  readonly kind: 'session' | 'run';
  readonly status: 'in-progress' | 'awaiting-approval';
  readonly aborted?: true;
  readonly parked?: true;
  readonly lastError?: StoredError;
}
export interface SimulatedAgent extends SimulatedConversation {
  runOnce(id: string, input: string, options: SimulatedSendOptions): Promise<ExecutionResult>;
  resume(
    sessionId: string,
    options?: { readonly kind?: 'session' | 'run' | undefined },
  ): Promise<ExecutionResult | null>;
  session(options: { readonly id: string }): SimulatedConversation;
  pending(): Promise<readonly SimulatedPendingRun[]>;
  recover(options: { readonly intervalMs: number }): unknown;
  shutdown(): Promise<void>;
  readonly approvals: {
    list(): Promise<readonly ApprovalRequest[]>;
    resolve(decision: ApprovalDecision): Promise<ExecutionResult>;
  };
}
