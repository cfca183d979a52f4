/** `agent_status`, `agent_await`, `agent_cancel`: what a model can do about tasks that it gave in the background. */
import { defineTool, type Tool } from '@lousho/contract';
import { z } from 'zod';

export type TaskControl =
  | { readonly type: 'status'; readonly taskIds?: readonly string[] | undefined }
  | { readonly type: 'await'; readonly taskIds: readonly string[] }
  | { readonly type: 'cancel'; readonly taskId: string };

/** No tool of an agent with sub-agents may be called so. */
export const TASK_CONTROL_NAMES = ['agent_status', 'agent_await', 'agent_cancel'] as const;

const types = new WeakMap<Tool, TaskControl['type']>();

export function taskControlTools(): readonly Tool[] {
  const ids = z.array(z.string().min(1)).min(1);
  return [
    controlTool('status', {
      name: 'agent_status',
      description: 'Says how far tasks in the background are, without waiting for them.',
      input: z.strictObject({ taskIds: ids.optional().describe('Default: all of them.') }),
    }),
    controlTool('await', {
      name: 'agent_await',
      description: 'Waits for tasks in the background, and gives their answers together.',
      input: z.strictObject({ taskIds: ids }),
    }),
    controlTool('cancel', {
      name: 'agent_cancel',
      description: 'Stops a task in the background. What it has done already stays done.',
      input: z.strictObject({ taskId: z.string().min(1) }),
    }),
  ];
}

function controlTool(
  type: TaskControl['type'],
  {
    name,
    description,
    input,
  }: { readonly name: string; readonly description: string; readonly input: z.ZodType },
): Tool {
  const tool = defineTool({
    ...{ name, description, input },
    execute: () => {
      throw new Error(`Invariant: ${name} was run as a tool`);
    },
  });
  types.set(tool, type);
  return tool;
}

/** What a call of one of them asks for; `undefined` for every other tool. `args` fit the tool. */
export function taskControlOf(tool: Tool, args: unknown): TaskControl | undefined {
  const type = types.get(tool);
  return type && ({ ...(args as object), type } as TaskControl);
}

/** Only ours: an agent without sub-agents may call its own tools so. */
export function isTaskControlTool(tool: Tool | undefined): boolean {
  return tool !== undefined && types.has(tool);
}
