import type { Checkpoint, Message, ToolResultPart } from '@lousho/contract';
import { expect, it } from 'vitest';
import { CrashJournal } from '../src/crash/crash-journal.ts';
import { checkpointOf } from './fixtures.ts';

const user: Message = { role: 'user', content: 'Pay.' };

function called(toolCallId: string): Message {
  return { role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName: 'pay', args: {} }] };
}
function part(toolCallId: string, fields: Partial<ToolResultPart> = {}): ToolResultPart {
  return { type: 'tool-result', toolCallId, toolName: 'pay', result: 'ok', ...fields };
}
function result(toolCallId: string, fields: Partial<ToolResultPart> = {}): Message {
  return { role: 'tool', content: [part(toolCallId, fields)] };
}
/** How many results of `pay` a journal counts after these saves under one id. */
function countAfter(...saves: Partial<Checkpoint>[]): number | undefined {
  const journal = new CrashJournal();
  for (const fields of saves)
    journal.noteCall({ method: 'save', args: ['a', checkpointOf(fields)], result: undefined });
  return journal.recordedByTool().get('pay');
}

it('counts a result once, first early and then in its place, and in every later save', () => {
  const early = { messages: [user, called('c')], settledResults: [part('c')] };
  const placed = { messages: [user, called('c'), result('c')] };
  expect(countAfter(early)).toBe(1);
  expect(countAfter(early, placed, placed)).toBe(1);
});

it('counts calls of two steps with one id apart', () => {
  const messages = [user, called('c'), result('c'), called('c'), result('c')];
  expect(countAfter({ messages })).toBe(2);
});

it('counts a failure of the tool, and nothing that the tool did not give', () => {
  const messages = (fields: Partial<ToolResultPart>): Message[] => [user, called('c'), result('c', fields)];
  expect(countAfter({ messages: messages({ kind: 'execution', isError: true }) })).toBe(1);
  for (const kind of ['rejected', 'interrupted', 'not-run', 'cancelled'] as const)
    expect(countAfter({ messages: messages({ kind, isError: true }) })).toBeUndefined();
});

it('counts the results of the run before once, though the next one goes on from its messages', () => {
  const first = [user, called('c'), result('c')];
  const next = { runId: 'run-0002', messages: [...first, user], runInput: { start: 3, count: 1 } };
  expect(countAfter({ messages: first }, next)).toBe(1);
});

it('does not count a save that the store refused', () => {
  const journal = new CrashJournal();
  const checkpoint = checkpointOf({ messages: [user, called('c'), result('c')] });
  for (const saved of [false, true]) {
    journal.noteCall({ method: 'saveIfLeased', args: ['a', checkpoint, 'owner'], result: saved });
    expect(journal.recordedByTool().get('pay')).toBe(saved ? 1 : undefined);
    expect(journal.runs).toHaveLength(saved ? 1 : 0);
  }
});

it('begins a new trace for a run that is saved again after it was deleted', () => {
  const journal = new CrashJournal();
  const save = (id: string): void =>
    journal.noteCall({ method: 'save', args: [id, checkpointOf({})], result: undefined });
  save('a');
  save('a.sub-abcd1234-1-0');
  save('b');
  journal.noteCall({ method: 'delete', args: ['a'], result: undefined });
  save('a');
  expect(journal.runs.map(({ id, isDeleted }) => [id, isDeleted])).toEqual([
    ['a', true],
    ['a.sub-abcd1234-1-0', true],
    ['b', false],
    ['a', false],
  ]);
});
