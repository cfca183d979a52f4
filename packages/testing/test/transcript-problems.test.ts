import type { Message, ToolMessage } from '@lousho/contract';
import { expect, it } from 'vitest';
import { transcriptProblems } from '../src/index.ts';

const system: Message = { role: 'system', content: 'Be kind.' };
const user: Message = { role: 'user', content: 'Hello' };
const bye: Message = { role: 'assistant', content: [{ type: 'text', text: 'Bye.' }] };

function calls(...ids: readonly string[]): Message {
  return {
    role: 'assistant',
    content: ids.map((toolCallId) => ({ type: 'tool-call', toolCallId, toolName: 'note', args: {} })),
  };
}
function result(toolCallId: string, toolName = 'note'): ToolMessage {
  return { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, result: 'ok' }] };
}

it.each<[string, Message[]]>([
  ['nothing at all', []],
  ['a plain exchange behind two system messages', [system, system, user, bye]],
  ['results behind their calls, in call order', [user, calls('a', 'b'), result('a'), result('b'), bye]],
  ['an id that comes back in a later step', [user, calls('a'), result('a'), calls('a'), result('a'), bye]],
  [
    'a call that the provider runs itself',
    [
      user,
      {
        role: 'assistant',
        content: [
          { type: 'tool-call', toolCallId: 's', toolName: 'search', args: {}, providerExecuted: true },
        ],
      },
      user,
    ],
  ],
])('takes %s', (_name, messages) => {
  expect(transcriptProblems(messages)).toEqual([]);
});

it.each<[string, Message[], string[]]>([
  [
    'a call without a result at the end',
    [user, calls('a', 'b'), result('a')],
    ['messages[1] calls "note" (b), and its result does not follow.'],
  ],
  [
    'a call without a result in the middle',
    [user, calls('a'), user, bye],
    ['messages[1] calls "note" (a), and its result does not follow.'],
  ],
  [
    'results in another order',
    [user, calls('a', 'b'), result('b'), result('a')],
    [
      'messages[2] is a result of "b" where the result of "a" belongs.',
      'messages[3] is a result of "a" where the result of "b" belongs.',
    ],
  ],
  [
    'a second result',
    [user, calls('a'), result('a'), result('a'), bye],
    ['messages[3] is a result of "a", and no call before it waits for one.'],
  ],
  [
    'a result that does not stand directly behind its call',
    [user, calls('a'), result('a'), bye, result('a')],
    ['messages[4] is a result of "a", and no call before it waits for one.'],
  ],
  [
    'a stray result',
    [user, result('x')],
    ['messages[1] is a result of "x", and no call before it waits for one.'],
  ],
  [
    'a result of another tool',
    [user, calls('a'), result('a', 'other')],
    ['messages[2] is a result of the tool "other", and the call "a" asked for "note".'],
  ],
  [
    'one id twice in a message',
    [user, calls('a', 'a'), result('a'), result('a')],
    ['messages[1] has two calls with the id "a".'],
  ],
  [
    'a system message further down',
    [user, system, bye],
    ['messages[1] is a system message, which may only stand in front of all others.'],
  ],
  [
    'an assistant who speaks first',
    [system, bye, user],
    [
      'messages[1] is the first message of the conversation and comes from the assistant instead of the user.',
    ],
  ],
  ['nothing behind the system messages', [system], ['There is no message behind the system messages.']],
])('finds %s', (_name, messages, problems) => {
  expect(transcriptProblems(messages)).toEqual(problems);
});
