/** A handoff takes place: the target is made ready, and the save that records the result makes it the one that answers. */
import type { AgentFingerprint, Checkpoint, RunConfig, ToolCallPart, ToolResultPart } from '@lousho/contract';
import { storedError } from '@lousho/contract';
import type { TakeoverFacts } from './fold.ts';
import { handedOverResult, handoffCount, type Handoff } from './handoff-tool.ts';
import type { OpenCall } from './next-action.ts';
import type { ResolvedAgent } from './resolved-agent.ts';
import type { Run } from './run.ts';
import { savedContext } from './run-context.ts';
import { givenUp, unlessAborted } from './run-stop.ts';
import { openTasks } from './task-ledger.ts';
import { failureResult, failures } from './tool-result.ts';

/** Who answers from now on. */
export interface Takeover {
  readonly agent: ResolvedAgent;
  readonly fingerprint: AgentFingerprint;
}

export type HandoffOutcome =
  | { readonly type: 'result'; readonly result: ToolResultPart; readonly takeover?: Takeover }
  /** The run goes on elsewhere, and hands over there. */
  | { readonly type: 'open' };

/** Never rejects. Nothing has happened yet when it resolves: a crash before the result is saved leaves the call open, and it is made again. */
export async function handOver(run: Run, { call }: OpenCall, { to }: Handoff): Promise<HandoffOutcome> {
  try {
    const takeover = await unlessAborted(run.stop.abandoned, openTarget(run, to));
    if (takeover !== givenUp)
      return { type: 'result', result: handedOverResult(call, run.agent.name, to), takeover };
    if (run.stop.current?.type !== 'abort') return { type: 'open' };
  } catch (error) {
    if (run.stop.current?.type !== 'abort') {
      const { message } = storedError(error);
      return { type: 'result', result: failureResult(call, 'execution', { error: message }) };
    }
  }
  return { type: 'result', result: failures.cancelledBeforeStart(call) };
}

async function openTarget(run: Run, name: string): Promise<Takeover> {
  const ctx = savedContext(run.checkpoint, run.sessionId);
  const agent = await run.source.resolve(ctx, undefined, name);
  return { agent, fingerprint: await agent.fingerprint() };
}

/** The checkpoint's part of it; the model that the target chose is kept with the run, as that of the agent before it was. */
export function takeoverFacts(
  { runConfig }: Checkpoint,
  leadName: string,
  { agent, fingerprint }: Takeover,
): TakeoverFacts {
  const { name, instructions, model } = agent;
  const config: RunConfig | undefined = runConfig && {
    ctx: runConfig.ctx,
    ...(model === undefined ? undefined : { model }),
  };
  return { activeAgent: name === leadName ? undefined : name, instructions, fingerprint, runConfig: config };
}

/** Asked before anybody else is: a person should not agree to what cannot happen. */
export function refusedHandoff(
  checkpoint: Checkpoint,
  call: ToolCallPart,
  handoff: Handoff | undefined,
): ToolResultPart | undefined {
  if (handoff === undefined) return undefined;
  // Who takes over has other sub-agents, and could neither await nor cancel them.
  const tasks = openTasks(checkpoint).map(({ taskId }) => taskId);
  if (tasks.length > 0)
    return failureResult(call, 'not-run', {
      error: `Tasks are in the background: ${tasks.join(', ')}. Await or cancel them, then hand the conversation over.`,
    });
  if (handoffCount(checkpoint) < handoff.max) return undefined;
  return failureResult(call, 'not-run', {
    error: `The conversation was handed over ${handoff.max} times for this input, and is not handed over again. Go on with it.`,
  });
}
