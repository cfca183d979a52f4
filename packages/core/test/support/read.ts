/** Transcripts, events and errors in the short form in which tests compare them. */
import {
  SDKError,
  resultOf,
  textOf,
  type AgentEvent,
  type AgentRun,
  type ErrorCode,
  type Message,
  type ToolResultPart,
} from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';
import { expect } from 'vitest';

/** One line a message: `user hi`, `assistant work#call_1`, `tool call_1 "done"`. */
export function lines(messages: readonly Message[]): readonly string[] {
  return messages.map((message) => {
    const result = resultOf(message);
    if (result !== undefined)
      return `tool ${result.toolCallId} ${result.kind ?? JSON.stringify(result.result)}`;
    if (message.role !== 'assistant') return `${message.role} ${textOf(message)}`;
    const calls = message.content.flatMap((part) =>
      part.type === 'tool-call' ? [`${part.toolName}#${part.toolCallId}`] : [],
    );
    return ['assistant', ...calls, ...(textOf(message) === '' ? [] : [textOf(message)])].join(' ');
  });
}

export function roles(messages: readonly Message[]): string {
  return messages.map(({ role }) => role).join(' ');
}

export function results(messages: readonly Message[]): readonly ToolResultPart[] {
  return messages.map(resultOf).filter((result) => result !== undefined);
}

/** The last result of a call. */
export function resultOfCall(messages: readonly Message[], toolCallId: string): ToolResultPart | undefined {
  return results(messages).findLast((result) => result.toolCallId === toolCallId);
}

export function expectValid(messages: readonly Message[]): void {
  expect(transcriptProblems(messages)).toEqual([]);
}

/** What a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('It resolved, and should have been refused.');
}

/** The error of ours that a promise rejects with, by its code. */
export async function refusal<Code extends ErrorCode>(
  promise: Promise<unknown>,
  code: Code,
): Promise<SDKError<Code>> {
  const error = await rejection(promise);
  expect(error).toBeInstanceOf(SDKError);
  expect((error as SDKError).code, String((error as Error).stack)).toBe(code);
  return error as SDKError<Code>;
}

/** The error of ours that a call throws at once. */
export function thrown(call: () => unknown): SDKError {
  try {
    call();
  } catch (error) {
    expect(error, String(error)).toBeInstanceOf(SDKError);
    return error as SDKError;
  }
  throw new Error('It did not throw.');
}

/** All events of a run, to its end, however it ends. */
export async function eventsOf(run: AgentRun): Promise<readonly AgentEvent[]> {
  const events: AgentEvent[] = [];
  try {
    for await (const event of run) events.push(event);
  } catch {
    // The test reads `run.result`.
  }
  return events;
}

export function typesOf(events: readonly AgentEvent[]): readonly string[] {
  return events.map(({ type }) => type).filter((type) => type !== 'checkpoint.saved');
}
