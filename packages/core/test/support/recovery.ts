/** A `recover()` under test: what it told its callbacks, and runs for it to find. */
import { PropagatingToolError, SDKError, type FinishedResult } from '@lousho/contract';
import { mockModel, type MockResponse } from '@lousho/testing';
import type { Agent, LoopHandle, PendingRun, RecoverOptions } from '../../src/index.ts';
import { rejection } from './read.ts';
import { spyTool, type SpyTool } from './tools.ts';
import type { World } from './world.ts';

export interface WatchedRecovery extends LoopHandle {
  /** `job-1: Done.` */
  readonly recovered: readonly string[];
  /** `job-1: LOUSHO_PROVIDER_ERROR`; without a run, `-: ...` */
  readonly errors: readonly string[];
  readonly thrown: readonly unknown[];
}

export function watchedRecovery(agent: Agent, options: RecoverOptions = {}): WatchedRecovery {
  const recovered: string[] = [];
  const errors: string[] = [];
  const thrown: unknown[] = [];
  const handle = agent.recover({
    ...options,
    onRecovered(run: PendingRun, result: FinishedResult) {
      recovered.push(`${run.sessionId}: ${result.text}`);
      return options.onRecovered?.(run, result);
    },
    onError(error, run) {
      thrown.push(error);
      const what = error instanceof SDKError ? error.code : String(error);
      errors.push(`${run?.sessionId ?? '-'}: ${what}`);
      return options.onError?.(error, run);
    },
  });
  return { ...handle, recovered, errors, thrown };
}

/** `id` called its tool, which rejected the run. The call is open, and counts as one attempt. */
export async function givenInterrupted(world: World, ids: readonly string[], tool: SpyTool): Promise<void> {
  const calls: readonly MockResponse[] = ids.map(() => ({ toolCalls: [{ name: tool.tool.name }] }));
  const agent = world.agent({ provider: mockModel(calls), tools: [tool.tool] });
  for (const id of ids) await rejection(agent.send('go', { sessionId: id }));
}

/** Rejects the run until its `count`-th run is over, then works. */
export function failingTool(count: number, name = 'work'): SpyTool {
  return spyTool(name, (_args, _ctx, run) => {
    if (run <= count) throw new PropagatingToolError('process died');
    return `${name} done`;
  });
}
