/** An agent that another one delegates or hands over to. */
import type { LLMProvider, ProviderTool } from './provider.ts';
import type { RemoteAgent } from './remote-agent.ts';
import type { RunContext, RunLimits } from './run.ts';
import type { NeedsApproval, Tool } from './tool.ts';

/** A value, or a function of the run: called once a run. On a resume tools and instructions are resolved again with the saved context; the model is the saved one. */
export type Dynamic<T> = T | ((ctx: RunContext) => T | Promise<T>);

/** A sub-agent (the lead's `task` tool runs it) or the target of a handoff (`handoff_to_<name>` switches to it). */
export interface SubAgent {
  readonly name: string;
  /** When to use it; the lead's model reads this. */
  readonly description: string;
  readonly instructions?: Dynamic<string> | undefined;
  /** Default: the lead's. */
  readonly provider?: LLMProvider | undefined;
  readonly model?: Dynamic<string> | undefined;
  readonly tools?: Dynamic<readonly Tool[]> | undefined;
  readonly providerTools?: readonly ProviderTool[] | undefined;
  readonly subagents?: readonly SubAgent[] | undefined;
  readonly maxSteps?: number | undefined;
  readonly limits?: RunLimits | undefined;
  readonly toolConcurrency?: number | 'unbounded' | undefined;
  /** Works elsewhere, with what that one has: besides name and description nothing else is given then. For tasks, not for handoffs. */
  readonly remote?: RemoteAgent | undefined;
}

/**
 * Who may take a conversation over. It answers within the run of the agent that lists it: under that one's `maxSteps`, `limits`,
 * `toolConcurrency`, hooks and store, so the first three are refused here.
 */
export interface HandoffTarget extends SubAgent {
  /** Whether a person must agree before it takes over. Default `false`. */
  readonly needsApproval?: NeedsApproval | undefined;
}
