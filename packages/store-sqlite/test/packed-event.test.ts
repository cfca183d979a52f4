/** Packing leaves out words, never content: whatever a message holds comes back, also what this release does not know. */
import { nextEvent, type LogEvent, type Message } from '@lousho/contract';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { eventText, parseEvent, parseEvents } from '../src/packed-event.ts';
import { awaitingApproval, copyOf, finished, hello, inProgress, says } from './support/fixtures.ts';

const call = { type: 'tool-call', toolCallId: 'call_1', toolName: 'look', args: { at: [1, null] } } as const;
const result = { type: 'tool-result', toolCallId: 'call_1', toolName: 'look', result: 'found' } as const;

function eventOf(...messages: readonly unknown[]): LogEvent {
  return {
    ...nextEvent(undefined, inProgress({ messages: [] })),
    m: messages as readonly Message[],
    n: messages.length,
  };
}

const plain: readonly (readonly [string, unknown])[] = [
  ['a response of text', says('Hello')],
  ['a response of text and calls', { role: 'assistant', content: [{ type: 'text', text: '' }, call, call] }],
  ['an empty response', { role: 'assistant', content: [] }],
  ['a result', { role: 'tool', content: [result] }],
  ['a result of null', { role: 'tool', content: [{ ...result, result: null }] }],
  ['a result that is a list', { role: 'tool', content: [{ ...result, result: [['a'], 'b', { c: 1 }] }] }],
];
const special: readonly (readonly [string, unknown])[] = [
  ['words of a person', hello],
  ['a system message', { role: 'system', content: 'Be brief.' }],
  ['the place of an early result', 'call_1'],
  ['a failed result', { role: 'tool', content: [{ ...result, isError: true }] }],
  [
    'a result with a field of the provider',
    { role: 'tool', content: [{ ...result, providerMetadata: { p: {} } }] },
  ],
  [
    'a result with a field too few',
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'call_1', result: 1 }] },
  ],
  [
    'a result with another field in the place of one',
    { role: 'tool', content: [{ ...result, toolName: undefined, x: 1 }] },
  ],
  ['two results in one message', { role: 'tool', content: [result, result] }],
  ['a message of the provider', { role: 'tool', content: [result], providerMetadata: { p: { id: 1 } } }],
  ['a response of the provider', { role: 'assistant', content: [call], providerMetadata: { p: { id: 1 } } }],
  [
    'text of the provider',
    { role: 'assistant', content: [{ type: 'text', text: 'a', providerMetadata: { p: {} } }] },
  ],
  [
    'a call that the provider runs',
    { role: 'assistant', content: [{ ...call, providerExecuted: true }, result] },
  ],
  ['reasoning', { role: 'assistant', content: [{ type: 'reasoning', text: 'hm' }, call] }],
  ['text that is none', { role: 'assistant', content: [{ type: 'text', value: 'a' }] }],
  ['a result that is none', { role: 'tool', content: [{ ...result, type: 'later' }] }],
  ['a response that is no list', { role: 'assistant', content: 'Hello' }],
  ['a part that is a text', { role: 'assistant', content: ['Hello'] }],
  ['a part that is a list', { role: 'assistant', content: [['call_1', 'look', {}]] }],
  ['a result that is nothing', { role: 'tool', content: [null] }],
  ['a part of a later release', { role: 'assistant', content: [{ type: 'later', a: ['x'] }] }],
  ['a message with a field named like ours', { role: 'user', content: 'Hello', a: ['x'] }],
];

it.each([...plain, ...special])('gives back %s', (_name, message) => {
  const event = eventOf(hello, message, message);
  expect(parseEvent(eventText('order-7', event))).toEqual(copyOf(event));
  expect(parseEvents([eventText('order-7', event), eventText('order-7', event)])).toEqual([
    copyOf(event),
    copyOf(event),
  ]);
});

it.each(plain)('leaves the names of fields out of %s', (_name, message) => {
  expect(eventText('order-7', eventOf(message))).not.toMatch(/role|content|toolName|"type"/);
});

it('gives back every other field of an event', () => {
  const states = [
    awaitingApproval('a.apr-1', { heldInput: [hello], inputIds: ['i-1'], businessState: null }),
    finished(),
  ];
  for (const state of states) {
    for (const event of [
      nextEvent(undefined, state),
      nextEvent(inProgress(), state),
      nextEvent(state, inProgress()),
    ])
      expect(parseEvent(eventText('order-7', event))).toEqual(copyOf(event));
  }
});

it('gives back messages of any shape', () => {
  const field = fc.oneof(
    fc.constantFrom('text', 'tool-call', 'tool-result', 'assistant', 'tool', 'a', ''),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const names = ['type', 'text', 'toolCallId', 'toolName', 'args', 'result', 'a', 'role', 'x'] as const;
  const part = fc.dictionary(fc.constantFrom(...names), field, { maxKeys: 5 });
  const message = fc.record(
    {
      role: fc.constantFrom('assistant', 'tool', 'user'),
      content: fc.oneof({ weight: 9, arbitrary: fc.array(part, { maxLength: 3 }) }, field),
      x: field,
    },
    { requiredKeys: ['role', 'content'] },
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(message, fc.string()), { maxLength: 4 }), (messages) => {
      const event = eventOf(...messages);
      expect(parseEvent(eventText('order-7', event))).toEqual(copyOf(event));
    }),
    { numRuns: 4_000 },
  );
});
