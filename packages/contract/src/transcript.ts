/** Reading a transcript: the last step, its calls, its text. Calls are looked up in the last assistant message only. */
import type { AssistantMessage, Message, ToolCallPart, ToolResultPart } from './messages.ts';
import type { ToolCallRecord } from './run.ts';

/** The last model response and the calls that we run (not those that the provider runs). */
export interface LastStep {
  /** Where the assistant message is. */
  readonly index: number;
  readonly message: AssistantMessage;
  readonly calls: readonly ToolCallPart[];
  /** How many of the calls have their result behind the message; results are in call order. */
  readonly answered: number;
}

/** `undefined` when the transcript does not end in a step: it ends in input, or is empty. */
export function lastStep(messages: readonly Message[]): LastStep | undefined {
  let index = messages.length - 1;
  while (index >= 0 && messages[index]?.role === 'tool') index -= 1;
  const message = messages[index];
  if (message?.role !== 'assistant') return undefined;
  return { index, message, calls: ownCalls(message), answered: messages.length - 1 - index };
}

const callsOfMessage = new WeakMap<AssistantMessage, readonly ToolCallPart[]>();

/** The calls of a response that are ours to run, in call order. */
export function ownCalls(message: AssistantMessage): readonly ToolCallPart[] {
  let calls = callsOfMessage.get(message);
  if (calls === undefined) {
    calls = message.content.filter(
      (part): part is ToolCallPart => part.type === 'tool-call' && part.providerExecuted !== true,
    );
    callsOfMessage.set(message, calls);
  }
  return calls;
}

export function textOf(message: Message): string {
  if (typeof message.content === 'string') return message.content;
  let text = '';
  for (const part of message.content) if (part.type === 'text') text += part.text;
  return text;
}

/** Text of the last assistant message; empty when there is none. */
export function lastAssistantText(messages: readonly Message[]): string {
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.role === 'assistant') return textOf(message);
  }
  return '';
}

export interface AnsweredCall {
  readonly call: ToolCallPart;
  readonly result: ToolResultPart;
}

/** Every call that has its result, in order. Results are found by place: a provider may use one call id in many steps. */
export function* answeredCalls(messages: readonly Message[]): Iterable<AnsweredCall> {
  let open: readonly ToolCallPart[] = [];
  let next = 0;
  for (const message of messages) {
    if (message.role === 'assistant') {
      open = ownCalls(message);
      next = 0;
      continue;
    }
    const call = open[next];
    const result = resultOf(message);
    if (call === undefined || result === undefined) continue;
    next += 1;
    yield { call, result };
  }
}

/** The answered calls as callers see them, in call order. */
export function callRecords(messages: readonly Message[]): ToolCallRecord[] {
  const records: ToolCallRecord[] = [];
  for (const { call, result } of answeredCalls(messages)) {
    records.push({
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      args: call.args,
      result: result.result,
      ...(result.isError === undefined ? undefined : { isError: result.isError }),
      ...(result.kind === undefined ? undefined : { kind: result.kind }),
    });
  }
  return records;
}

/** The result that a tool message holds. */
export function resultOf(message: Message): ToolResultPart | undefined {
  return message.role === 'tool' ? message.content[0] : undefined;
}
