/** `handoff_to_<name>`: a call with which the agent that answers hands the conversation over to another one of the same run. */
import {
  defineTool,
  handoffMark,
  resultOf,
  withHandoffMark,
  type Checkpoint,
  type HandoffTarget,
  type JsonObject,
  type Message,
  type Tool,
  type ToolCallPart,
  type ToolResultPart,
} from '@lousho/contract';
import { valueResult } from './tool-result.ts';

/** What a call of the tool asks for. */
export interface Handoff {
  readonly to: string;
  /** Handoffs of one run. */
  readonly max: number;
}

const handoffs = new WeakMap<Tool, Handoff>();

export function handoffToolName(name: string): string {
  return `handoff_to_${name}`;
}

export function handoffTool(
  { name, description, needsApproval }: Pick<HandoffTarget, 'name' | 'description' | 'needsApproval'>,
  max: number,
): Tool {
  const toolName = handoffToolName(name);
  const tool = defineTool({
    name: toolName,
    description: `Hands the conversation over to "${name}", which answers from then on. ${description}`,
    input: REASON,
    needsApproval,
    execute: () => {
      throw new Error(`Invariant: ${toolName} was run as a tool`);
    },
  });
  handoffs.set(tool, { to: name, max });
  return tool;
}

/** Whoever takes over reads it in the transcript. What else a model writes there is no reason to refuse. */
const REASON = {
  type: 'object',
  properties: { reason: { type: 'string', description: 'Why, and what is still to do.' } },
} satisfies JsonObject;

/** Only ours: an agent without handoffs may call a tool of its own so. */
export function handoffOf(tool: Tool | undefined): Handoff | undefined {
  return tool === undefined ? undefined : handoffs.get(tool);
}

/* ── Its result ── */

/** Marked, so that a result which a hook gave in its place is not taken for a handoff. */
export function handedOverResult(call: ToolCallPart, from: string, to: string): ToolResultPart {
  const words = `The conversation is handed over to "${to}", which answers from here on.`;
  return withHandoffMark(valueResult(call, words), { from, to });
}

/** The result of the last handoff that took place. Read from the end: a transcript may be long. */
export function lastHandoff(messages: readonly Message[]): ToolResultPart | undefined {
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const result = resultOf(messages[index] as Message);
    if (result !== undefined && handoffMark(result) !== undefined) return result;
  }
  return undefined;
}

/** Who answers in a conversation; `undefined` when it was never handed over. */
export function answeringAgent(messages: readonly Message[]): string | undefined {
  const last = lastHandoff(messages);
  return last && handoffMark(last)?.to;
}

/** The handoffs of this run that took place. */
export function handoffCount({ messages, runInput: { start, count } }: Checkpoint): number {
  return messages.slice(start + count).filter((message) => {
    const result = resultOf(message);
    return result !== undefined && handoffMark(result) !== undefined;
  }).length;
}
