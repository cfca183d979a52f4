/** `task`: a call that a sub-agent works on. What it comes to is the call's result. */
import { defineTool, type SubAgent, type Tool } from '@lousho/contract';
import { z } from 'zod';

export const TASK = 'task';
const tools = new WeakSet<Tool>();

export interface TaskArgs {
  readonly agent: string;
  readonly prompt: string;
  /** Of an earlier task, which it goes on with. */
  readonly taskId?: string;
  readonly background?: boolean;
}

export function taskTool(subagents: readonly Pick<SubAgent, 'name' | 'description'>[]): Tool {
  const names = subagents.map(({ name }) => name);
  const list = subagents.map(({ name, description }) => `- ${name}: ${description}`).join('\n');
  const tool = defineTool({
    name: TASK,
    description: `Gives a task to a sub-agent. It works on it by itself, and its answer is the result.\n${list}`,
    input: z.strictObject({
      agent: z.enum(names),
      prompt: z
        .string()
        .min(1)
        .describe('All that the sub-agent needs to know: it does not see this conversation.'),
      description: z.string().optional().describe('What the task is, in a few words.'),
      taskId: z
        .string()
        .optional()
        .describe('Of an earlier task, for example task_1: the sub-agent goes on with it and remembers it.'),
      background: z
        .boolean()
        .optional()
        .describe(
          'Gives the id of the task at once. It is worked on meanwhile; agent_await gives the answer.',
        ),
    }),
    execute: () => {
      throw new Error(`Invariant: ${TASK} was run as a tool`);
    },
  });
  tools.add(tool);
  return tool;
}

/** Only ours: an agent without sub-agents may call a tool of its own `task`. */
export function isTaskTool(tool: Tool | undefined): boolean {
  return tool !== undefined && tools.has(tool);
}
