/** `task`: a call that a sub-agent works on. What it comes to is the call's result. */
import { defineTool, ownCalls, type Message, type SubAgent, type Tool } from '@lousho/contract';
import { z } from 'zod';

export const TASK = 'task';
const tools = new WeakSet<Tool>();

export interface TaskArgs {
  readonly agent: string;
  readonly prompt: string;
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

/** `task_1`, `task_2`, ...: the tasks of a conversation in the order in which the model gave them. */
export function taskIdOf(messages: readonly Message[], toolCallId: string): string {
  let count = 0;
  let last = 0;
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    for (const call of ownCalls(message)) {
      if (call.toolName !== TASK) continue;
      count += 1;
      // A provider may use one id in many steps: it is the call of the last one.
      if (call.toolCallId === toolCallId) last = count;
    }
  }
  return `${TASK}_${last}`;
}
