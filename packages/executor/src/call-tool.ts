/** One call runs: time-out, abort, sandbox, what it returns as JSON, what it throws as an error result. */
import {
  PropagatingToolError,
  cutText,
  deepFreeze,
  isPersonQuestion,
  storedError,
  toJson,
  type JsonValue,
  type PersonQuestion,
  type Tool,
  type ToolCallInfo,
  type ToolCallRecord,
  type ToolResultPart,
} from '@lousho/contract';
import { runTask } from './child-run.ts';
import { controlTasks } from './control-tasks.ts';
import { handOver, type Takeover } from './hand-over.ts';
import { handoffOf } from './handoff-tool.ts';
import type { OpenCall } from './next-action.ts';
import { hookResult, toolHookContext, type PreparedCall } from './prepare-call.ts';
import type { Run } from './run.ts';
import { givenUp, unlessAborted } from './run-stop.ts';
import type { TaskOutcome } from './task-result.ts';
import { taskControlOf } from './task-control-tools.ts';
import { isTaskTool, type TaskArgs } from './task-tool.ts';
import { failureResult, failures, valueResult } from './tool-result.ts';

export type ReadyCall = Extract<PreparedCall, { type: 'ready' }>;

export type CallOutcome =
  | (Extract<TaskOutcome, { type: 'result' }> & {
      /** A handoff: who answers once the result is recorded. */
      readonly takeover?: Takeover;
      readonly replacedByHook?: true;
      readonly hookError?: unknown;
    })
  /** The tool asks a person, and runs again with the answer. */
  | { readonly type: 'waits'; readonly asked: Asked }
  /** Open: the run goes on elsewhere. Waits: calls inside of it are for a person. Propagated: it rejects the run instead. */
  | Exclude<TaskOutcome, { type: 'result' }>;

interface Asked extends PersonQuestion {
  /** What it ran with, and will run with again. */
  readonly args: JsonValue;
}

/** Never rejects. */
export function callTool(run: Run, open: OpenCall, ready: ReadyCall): Promise<CallOutcome> {
  const executing = traced(run, open, ready);
  return run.engine.hooks.length === 0 ? executing : withHooks(run, open, ready, executing);
}

async function withHooks(
  run: Run,
  open: OpenCall,
  ready: ReadyCall,
  executing: Promise<CallOutcome>,
): Promise<CallOutcome> {
  const executed = await executing;
  if (executed.type !== 'result') return executed;
  const after = await runAfterHooks(run, open, ready, executed.result);
  const { providerMetadata } = executed.result;
  // Which task it was, or which handoff, is no part of what the hook replaced.
  const result = providerMetadata === undefined ? after.result : { ...after.result, providerMetadata };
  return { ...executed, ...after, result };
}

function traced(run: Run, open: OpenCall, ready: ReadyCall): Promise<CallOutcome> {
  const { telemetry } = run.engine;
  if (telemetry.toolCall === undefined) return executeAny(run, open, ready);
  const { args, tool, ctx } = ready;
  const about: ToolCallInfo = {
    ...run.segmentInfo(),
    ...{ call: open.call, args, description: tool.description, rerun: ctx.rerun },
    ...(ctx.approval === undefined ? undefined : { approvalId: ctx.approval.id }),
  };
  return telemetry.toolCall(about, () => executeAny(run, open, ready));
}

function executeAny(run: Run, open: OpenCall, ready: ReadyCall): Promise<CallOutcome> {
  const handoff = handoffOf(ready.tool);
  if (handoff !== undefined) return handOver(run, open, handoff);
  const control = taskControlOf(ready.tool, ready.parsedArgs);
  if (control !== undefined) return controlTasks(run, open, control);
  return isTaskTool(ready.tool)
    ? runTask(run, open, ready.parsedArgs as TaskArgs)
    : execute(run, open, ready);
}

async function execute(run: Run, open: OpenCall, ready: ReadyCall): Promise<CallOutcome> {
  const { call } = open;
  const { timeoutMs } = ready.tool;
  try {
    const execution = timeoutMs === undefined ? start(run, ready) : startWithTimeout(run, ready, timeoutMs);
    const value = await unlessAborted(run.stop.abandoned, execution);
    if (value === givenUp)
      return run.stop.current?.type === 'abort'
        ? result(failures.cancelledWhileRunning(call))
        : { type: 'open' };
    if (isPersonQuestion(value)) return { type: 'waits', asked: { ...value, args: ready.args } };
    return result(recordedValue(open, ready.tool, value));
  } catch (error) {
    if (error instanceof TimedOut) return result(failureResult(call, 'execution', { error: error.message }));
    if (run.stop.current?.type === 'abort') return result(failures.cancelledWhileRunning(call));
    if (error instanceof PropagatingToolError) return { type: 'propagated', error: nameCall(error, open) };
    return result(failureResult(call, 'execution', { error: errorText(error) }));
  }
}

function result(value: ToolResultPart): CallOutcome {
  return { type: 'result', result: value };
}

class TimedOut extends Error {}

/** The tool's own signal is made only for a tool that has a time-out; others share the run's. */
async function startWithTimeout(run: Run, ready: ReadyCall, timeoutMs: number): Promise<unknown> {
  const timeout = new AbortController();
  const error = new TimedOut(
    `The tool did not end within ${timeoutMs} ms. It may or may not have taken effect.`,
  );
  const cancel = run.engine.ports.clock.setTimer(() => timeout.abort(error), timeoutMs);
  const signal = AbortSignal.any([run.stop.signal, timeout.signal]);
  const ctx = Object.defineProperty(ready.ctx, 'signal', { value: signal });
  try {
    const value = await unlessAborted(timeout.signal, start(run, { ...ready, ctx }));
    if (value === givenUp) throw error;
    return value;
  } finally {
    cancel();
  }
}

async function start(run: Run, { tool, parsedArgs, args, ctx }: ReadyCall): Promise<unknown> {
  const { sandboxExecute } = run.engine;
  if (tool.sandbox !== true || sandboxExecute === undefined) return tool.execute(parsedArgs, ctx);
  return sandboxExecute({
    toolName: tool.name,
    args,
    ctx,
    run: async () => tool.execute(parsedArgs, ctx),
  });
}

/** Above it a result is a mistake more often than a wish, and each later model call would pay for it. */
const DEFAULT_MAX_RESULT_BYTES = 1024 * 1024;

function recordedValue({ call }: OpenCall, tool: Tool, value: unknown): ToolResultPart {
  const json = toJson(value);
  if (!json.ok) {
    const where = json.path === '' ? '' : ` at ${json.path}`;
    return failureResult(call, 'execution', {
      error: `The tool ran, but its result cannot be written as JSON${where}.`,
    });
  }
  const { maxResultBytes = DEFAULT_MAX_RESULT_BYTES } = tool;
  const bytes =
    typeof json.json === 'object' || (typeof json.json === 'string' && json.json.length * 3 > maxResultBytes)
      ? jsonBytes(json.json)
      : 0;
  if (bytes > maxResultBytes) {
    return failureResult(call, 'execution', {
      error: `The tool ran, but its result has ${bytes} bytes; at most ${maxResultBytes} are kept.`,
    });
  }
  return valueResult(call, deepFreeze(json.json));
}

function jsonBytes(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}

function errorText(error: unknown): string {
  const { message } = storedError(error);
  return message === '' ? 'The tool failed without a message.' : cutText(message, 2_000);
}

/** The error stays the very object that the tool threw; it learns where it came from. */
function nameCall(error: PropagatingToolError, { call }: OpenCall): PropagatingToolError {
  const details = { toolName: call.toolName, toolCallId: call.toolCallId };
  if (Object.isExtensible(error))
    Object.defineProperty(error, 'details', {
      value: details,
      configurable: true,
      enumerable: true,
      writable: true,
    });
  return error;
}

/** Before the result is recorded: one save. When a hook throws, the tool's own result is recorded all the same, then the run rejects. */
async function runAfterHooks(
  run: Run,
  open: OpenCall,
  ready: ReadyCall,
  own: ToolResultPart,
): Promise<Extract<CallOutcome, { type: 'result' }>> {
  const isApproved = ready.ctx.approval !== undefined;
  let current = own;
  let replacedByHook = false;
  for (const hooks of run.engine.hooks) {
    try {
      const outcome = await hooks.afterTool?.(
        toolHookContext(run, open, ready.args, isApproved),
        recordOf(open, ready, current),
      );
      if (outcome === undefined) continue;
      current = hookResult(open, outcome.result);
      replacedByHook = true;
    } catch (hookError) {
      return { type: 'result', result: own, hookError };
    }
  }
  return { type: 'result', result: current, ...(replacedByHook ? { replacedByHook } : undefined) };
}

function recordOf(
  { call }: OpenCall,
  { args }: ReadyCall,
  { result: value, isError, kind }: ToolResultPart,
): ToolCallRecord {
  return {
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    args,
    result: value,
    ...(isError === undefined ? undefined : { isError }),
    ...(kind === undefined ? undefined : { kind }),
  };
}
