/** Tools that remember how they were called, and promises that a test settles by hand. */
import {
  PropagatingToolError,
  defineTool,
  type JsonObject,
  type Tool,
  type ToolContext,
} from '@lousho/contract';
import { z } from 'zod';

interface ToolRun {
  readonly args: JsonObject;
  readonly ctx: ToolContext;
}
export interface SpyTool {
  readonly tool: Tool;
  readonly runs: readonly ToolRun[];
}
type SpyOptions = Partial<Pick<Tool, 'needsApproval' | 'onInterrupted' | 'timeoutMs' | 'sandbox'>>;

/** A tool that takes any object. `execute` gets the number of this run, from 1. */
export function spyTool(
  name: string,
  execute: (args: JsonObject, ctx: ToolContext, run: number) => unknown = () => `${name} done`,
  options: SpyOptions = {},
): SpyTool {
  const runs: ToolRun[] = [];
  const tool = defineTool({
    name,
    description: `Does ${name}.`,
    input: { type: 'object' },
    execute(args: JsonObject, ctx) {
      runs.push({ args, ctx });
      return execute(args, ctx, runs.length);
    },
    ...options,
  });
  return { tool: tool, runs };
}

export function gatedTool(name: string, execute?: Parameters<typeof spyTool>[1]): SpyTool {
  return spyTool(name, execute, { needsApproval: true });
}

/** Rejects the run the first time, as a process that dies would leave it. */
export function failingOnceTool(name: string): SpyTool {
  return spyTool(name, (_args, _ctx, run) => {
    if (run === 1) throw new PropagatingToolError('process died');
    return `${name} done`;
  });
}

/** A gated mailer with a schema: what a person may change are its arguments. */
export function emailTool(send: (args: { readonly to: string }, ctx: ToolContext) => unknown = () => 'sent') {
  const runs: { readonly to: string }[] = [];
  const contexts: ToolContext[] = [];
  const tool = defineTool({
    name: 'email',
    description: 'Sends an email.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    execute(args, ctx) {
      runs.push(args);
      contexts.push(ctx);
      return send(args, ctx);
    },
  });
  return { tool, runs, contexts };
}

export interface Deferred<Value> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
  reject(error: unknown): void;
}

export function deferred<Value = void>(): Deferred<Value> {
  let resolve: (value: Value) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<Value>((res, rej) => {
    resolve = res;
    reject = rej;
  });
  return { promise, resolve, reject };
}
