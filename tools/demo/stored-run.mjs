// What the store holds of the run, read by a fresh handle as any other process would.
import path from 'node:path';
import { lastStep, textOf } from '@lousho/core';
import { SqliteStore } from '@lousho/store-sqlite';
import { SESSION_ID } from './order-agent.mjs';

/** `null` when nothing is stored yet. */
export async function readRun(folder) {
  const store = new SqliteStore(path.join(folder, 'runs.db'));
  try {
    return (await store.checkpoints.load(SESSION_ID)) ?? null;
  } finally {
    await store.close();
  }
}

/** Results in the transcript and those that settled before a slower sibling, by the id of their call. */
export function recordedResults({ messages, settledResults }) {
  const placed = messages.filter(({ role }) => role === 'tool').map(({ content: [result] }) => result);
  return new Map([...placed, ...settledResults].map((result) => [result.toolCallId, result]));
}

/** Calls of the last response without a result. */
export function openCalls(checkpoint) {
  const recorded = recordedResults(checkpoint);
  const { calls = [] } = lastStep(checkpoint.messages) ?? {};
  return calls.filter(({ toolCallId }) => !recorded.has(toolCallId));
}

/** The stored run for a reader, line by line. */
export function describeRun(checkpoint) {
  if (checkpoint === null) return ['nothing yet: no model response had arrived'];
  const { status, stepIndex, messages, settledResults } = checkpoint;
  const open = openCalls(checkpoint);
  return [
    ...list('status', [`${status}, ${stepIndex} model responses, ${messages.length} messages`]),
    ...list(
      'messages',
      messages.map((message) => `${message.role.padEnd(10)}${describeMessage(message)}`),
    ),
    ...list('settled', settledResults.map(describeResult)),
    ...list('open', open.map(describeCall)),
  ];
}

/** The stored run in a few words. */
export function summarizeRun(checkpoint) {
  if (checkpoint === null) return 'nothing yet';
  const { status, stepIndex } = checkpoint;
  if (status !== 'in-progress') return `step ${stepIndex}, ${status}`;
  const open = openCalls(checkpoint).map(({ toolName }) => toolName);
  return `step ${stepIndex}, ${open.length === 0 ? 'no open call' : `open: ${open.join(', ')}`}`;
}

function list(title, lines) {
  return lines.map((line, index) => `${(index === 0 ? title : '').padEnd(10)}${line}`);
}

function describeMessage(message) {
  if (message.role === 'tool') return describeResult(message.content[0]);
  const calls =
    message.role === 'assistant' ? message.content.filter(({ type }) => type === 'tool-call') : [];
  return [textOf(message), ...calls.map(describeCall)].filter((text) => text !== '').join('; ');
}

export function describeCall({ toolName, args }) {
  return `${toolName}(${words(args)})`;
}

function describeResult({ toolName, result }) {
  return `${toolName} → ${words(result)}`;
}

function words(value) {
  return JSON.stringify(value)
    .replaceAll(/"(\w+)":/g, '$1: ')
    .replaceAll(',', ', ');
}
