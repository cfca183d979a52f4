/** Tools and responses of the stories. */
import { defineTool, type JsonValue, type Tool, type ToolContext, type ToolDefinition } from '@lousho/core';
import type { MockResponse } from '@lousho/testing';
import { z } from 'zod';

export function tool(
  name: string,
  execute: (args: unknown, ctx: ToolContext) => unknown = () => `${name} done`,
  more: Partial<ToolDefinition<z.ZodType, unknown>> = {},
): Tool {
  return defineTool<z.ZodType, unknown>({
    name,
    description: `Does ${name}.`,
    input: z.looseObject({}),
    ...more,
    execute,
  });
}

export function calling(...names: readonly (string | readonly [string, JsonValue])[]): MockResponse {
  return {
    toolCalls: names.map((item) => {
      const [name, args] = typeof item === 'string' ? [item, {}] : item;
      return { name, args, id: `call_${name}` };
    }),
  };
}
