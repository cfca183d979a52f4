/** The crash sweep over an agent of yours: one input, every approval decided, a crash at each store call and at what its tools do. */
import type { AgentInput, ApprovalDecision, ApprovalRequest, ExecutionResult } from '@lousho/contract';
import type { CrashOutcome, CrashReport, CrashWorld } from './crash-scenario.ts';
import { crashSweep } from './crash-sweep.ts';

/** The part of `Agent` that the sweep drives. */
export interface CrashableAgent {
  runOnce(id: string, input: AgentInput): Promise<ExecutionResult>;
  readonly approvals: {
    get(id: string): Promise<ApprovalRequest | undefined>;
    resolve(decision: ApprovalDecision): Promise<ExecutionResult>;
  };
}
export interface CrashTestOptions {
  /** Builds the agent in each process, on `world.store` and `world.ports`. Its model must answer a repeated request alike: `mockModel(script, { answerBy: 'step' })`. */
  agent(world: CrashWorld): CrashableAgent | Promise<CrashableAgent>;
  readonly input: AgentInput;
  /** Default: approves everything. */
  decide?(request: ApprovalRequest): Omit<ApprovalDecision, 'id'>;
  check?(outcome: CrashOutcome & { readonly result: ExecutionResult }): void | Promise<void>;
}

const RUN_ID = 'crash-test';
/** More than any run in a test asks for. */
const MAX_DECISIONS = 100;

/** `crashSweep` over an agent of yours. Rejects with the crash points that broke a promise. */
export async function crashTest(options: CrashTestOptions): Promise<CrashReport> {
  let result: ExecutionResult | undefined;
  const report = await crashSweep({
    async run(world) {
      result = await runToEnd(options, await options.agent(world));
    },
    async check(outcome) {
      if (result !== undefined) await options.check?.({ ...outcome, result });
    },
  });
  if (report.failures.length > 0) throw new Error(describeFailures(report));
  return report;
}

async function runToEnd(options: CrashTestOptions, agent: CrashableAgent): Promise<ExecutionResult> {
  let result = await agent.runOnce(RUN_ID, options.input);
  for (let count = 0; result.finishReason === 'awaiting-approval'; count += 1) {
    const id = result.approvalId;
    const request = await agent.approvals.get(id);
    if (request === undefined)
      throw new Error(`The run waits for the approval "${id}", which the agent does not know.`);
    if (count === MAX_DECISIONS) throw new Error(`The run asked for more than ${MAX_DECISIONS} approvals.`);
    result = await agent.approvals.resolve({ ...(options.decide?.(request) ?? { approved: true }), id });
  }
  return result;
}

function describeFailures({ points, failures }: CrashReport): string {
  const lines = failures.map(({ point, message }) => `  ${point.when} ${point.call}: ${message}`);
  return [`${failures.length} of ${points} crash points broke a promise:`, ...lines].join('\n');
}
