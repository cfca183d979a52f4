/** Makes a tool, checking everything about it that can be wrong before the first call. */
import { ConfigurationError } from './errors.ts';
import { deepFreeze } from './freeze.ts';
import { jsonEqual, type JsonValue } from './json.ts';
import { handoffMark } from './handoff-mark.ts';
import type { Message } from './messages.ts';
import { requireKnownOptions, type OptionNames } from './known-options.ts';
import { inputJsonSchema } from './tool-schema.ts';
import type { ArgsOf, InputSchema, NeedsApproval, Tool, ToolContext, ToolDefinition } from './tool.ts';
import { answeredCalls, resultOf } from './transcript.ts';

/** A part that nobody knows is a mistake in its name: `needApproval` would let everything run. `inputSchema` is what a defined tool has. */
const everyPart: OptionNames<Tool> = {
  name: true,
  description: true,
  input: true,
  inputSchema: true,
  execute: true,
  needsApproval: true,
  onInterrupted: true,
  timeoutMs: true,
  maxResultBytes: true,
  sandbox: true,
};

/** The strictest rule of the large providers. */
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** @throws synchronously LOUSHO_CONFIG_INVALID with the path of what JSON Schema cannot say. */
export function defineTool<S extends InputSchema, Result>(
  definition: ToolDefinition<S, Result>,
): Tool<ArgsOf<S>, Result> {
  // What its class may hold is not its own and would be lost, the approval rule with it: only its own fields are looked at.
  const own = { ...definition };
  const { name, input, timeoutMs, maxResultBytes, needsApproval, onInterrupted } = own;
  if (typeof name !== 'string' || !TOOL_NAME.test(name))
    refuse('tool.name', name, '1-64 characters of A-Z a-z 0-9 _ -');
  const option = (part: string): string => `tools.${name}.${part}`;
  requireKnownOptions(option(''), own, everyPart);
  if (typeof own.description !== 'string') refuse(option('description'), own.description, 'a text');
  const execute: unknown = Reflect.get(own, 'execute');
  if (typeof execute !== 'function') refuse(option('execute'), execute, 'a function of the object itself');
  if (input === undefined || input === null) refuse(option('input'), input, 'a schema');
  if (timeoutMs !== undefined && !(timeoutMs > 0)) refuse(option('timeoutMs'), timeoutMs, 'more than 0');
  if (maxResultBytes !== undefined && !(maxResultBytes > 0))
    refuse(option('maxResultBytes'), maxResultBytes, 'more than 0');
  if (!['undefined', 'boolean', 'function'].includes(typeof needsApproval))
    refuse(option('needsApproval'), needsApproval, 'true, false or a function');
  if (typeof onInterrupted !== 'function' && ![undefined, 'retry', 'never', 'ask'].includes(onInterrupted))
    refuse(option('onInterrupted'), onInterrupted, "'retry', 'never', 'ask' or a function");
  return Object.freeze({ ...own, inputSchema: deepFreeze(inputJsonSchema(input, option('input'))) });
}

/**
 * Asks a person the first time in a transcript; `per: 'args'` once for each different arguments. A callback's yes is not remembered, and a
 * handoff forgets: the person agreed to what another agent does.
 */
export function once({ per = 'tool' }: { readonly per?: 'tool' | 'args' | undefined } = {}): NeedsApproval {
  return (args: unknown, ctx: ToolContext) => {
    for (const { call, result } of answeredCalls(sinceHandoff(ctx.messages))) {
      const approvedByPerson = result.approval?.approved === true && result.approval.source === undefined;
      if (call.toolName !== ctx.toolName || !approvedByPerson) continue;
      if (per === 'tool' || jsonEqual(call.args, args as JsonValue)) return false;
    }
    return true;
  };
}

function sinceHandoff(messages: readonly Message[]): readonly Message[] {
  const isHandoff = (message: Message): boolean => {
    const result = resultOf(message);
    return result !== undefined && handoffMark(result) !== undefined;
  };
  return messages.slice(messages.findLastIndex(isHandoff) + 1);
}

function refuse(option: string, got: unknown, want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
}
