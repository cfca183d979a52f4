import { isSDKError, type AgentInput, type Checkpoint, type Message } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { inputMessages, newMessages } from '../src/accept-input.ts';
import { assistant, call, finished, inProgress, system, tool, user } from './checkpoints.ts';

const [u1, a1, u2, a2] = [user('hi'), assistant('hello'), user('how are you?'), assistant('fine')] as const;
const asked = assistant('', call('a'));

const done = finished({ messages: [system('Be kind.'), u1, a1] });
const doneTwice = finished({ messages: [u1, a1, u2, a2], runInput: { start: 2, count: 1 } });
/** The first run, cut in its first step. */
const cut = inProgress({
  messages: [system('Be kind.'), u1, asked],
  runInput: { start: 1, count: 1 },
  stepIndex: 1,
});
/** A later run of the conversation, cut in its first step. */
const cutLater = inProgress({
  messages: [u1, a1, u2, asked, tool('a')],
  runInput: { start: 2, count: 1 },
  stepIndex: 1,
});
/** Aborted in its first model call: nothing but the input is there. */
const unanswered = inProgress({ messages: [u1], inputIds: ['i-1'] });
const started2 = inProgress({
  messages: [user('one'), user('two'), asked],
  runInput: { start: 0, count: 2 },
});
const withHeld = inProgress({
  messages: [u1, asked],
  heldInput: [user('wait')],
  runInput: { start: 0, count: 1 },
});
const withJoined = inProgress({
  messages: [u1, asked, tool('a'), user('wait'), asked],
  runInput: { start: 0, count: 1 },
});

type Row = readonly [
  rule: string,
  stored: Checkpoint,
  given: AgentInput,
  added: readonly Message[],
  inputId?: string,
];

const rows: readonly Row[] = [
  ['a finished run takes new words', done, 'next', [user('next')]],
  ['a finished run takes the same words as a new turn', done, 'hi', [u1]],
  [
    'a finished run recognises its whole history before the new words',
    done,
    [u1, a1, user('next')],
    [user('next')],
  ],
  ['the history may bring its system messages along', done, [system('Be kind.'), u1, a1, u2], [u2]],
  ['system messages of a later input are dropped', done, [system('Be rude.'), u2], [u2]],
  ['a system message alone is nothing new', done, [system('Be rude.')], []],
  ['the whole history and nothing else is nothing new', done, [u1, a1], []],
  ['an empty list is nothing new', done, [], []],
  [
    'a finished run takes a history that lags behind as new words: it does not cover what is stored',
    doneTwice,
    [u1, a1, u2],
    [u1, a1, u2],
  ],
  ['a finished run takes its last question again', doneTwice, 'how are you?', [u2]],
  ['a history may be a JSON clone with other key order', done, reordered([u1, a1, u2]), [u2]],
  [
    'a text equals a single text part',
    done,
    [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }, a1, u2],
    [u2],
  ],
  ['an unfinished run takes its own input again as a retry', cut, 'hi', []],
  ['a retry may bring more words', cut, [u1, user('and')], [user('and')]],
  ['an unfinished run takes other words as new', cut, 'something else', [user('something else')]],
  ['a history that lags behind an unfinished run brings only what follows', cutLater, [u1, a1, u2], []],
  ['... and its new words', cutLater, [u1, a1, u2, user('and')], [user('and')]],
  ['a later run takes its own input again as a retry', cutLater, 'how are you?', []],
  ['words of an earlier turn are no retry', cutLater, 'hi', [u1]],
  [
    'an unfinished run recognises the whole history, results too',
    cutLater,
    [u1, a1, u2, asked, tool('a')],
    [],
  ],
  ['of several start messages one alone is no retry', started2, 'one', [user('one')]],
  ['of several start messages the last alone is no retry', started2, 'two', [user('two')]],
  ['all start messages are a retry', started2, [user('one'), user('two')], []],
  ['input that was held back is a retry of itself', withHeld, 'wait', []],
  ['the start and what was held back in a row are a retry', withHeld, [u1, user('wait')], []],
  ['... and more words behind them are new', withHeld, [u1, user('wait'), user('now')], [user('now')]],
  ['input that joined is a retry of itself', withJoined, 'wait', []],
  ['the start and what joined in a row are a retry', withJoined, [u1, user('wait')], []],
  ['what joined, with more words, is not the last input', withJoined, [user('wait'), u2], [user('wait'), u2]],
  [
    'of inputs that came one after the other the last one alone is a retry',
    inProgress({ messages: [u1, asked], heldInput: [user('wait'), user('stop')] }),
    'stop',
    [],
  ],
  [
    '... and one in the middle is not',
    inProgress({ messages: [u1, asked], heldInput: [user('wait'), user('stop')] }),
    'wait',
    [user('wait')],
  ],
  ['a run without any answer yet takes its input again as a retry', unanswered, 'hi', []],
  ['... and new words as new', unanswered, 'hello?', [user('hello?')]],
  ['an id that the session holds is never added again, whatever it says', unanswered, 'other', [], 'i-1'],
  ['... also when the run is finished', finished({ inputIds: ['i-1'] }), 'other', [], 'i-1'],
  ['a new id makes the same words a new input: on an unfinished run', cut, 'hi', [u1], 'i-2'],
  ['... and on one without an answer', unanswered, 'hi', [u1], 'i-2'],
  ['a new id does not hide the history before the new words', done, [u1, a1, u2], [u2], 'i-2'],
  ['... nor the one of an unfinished run', cutLater, [u1, a1, u2, user('and')], [user('and')], 'i-2'],
  ['results at the end are no input, whatever its id', cutLater, cutLater.messages, [], 'i-2'],
  ['an answer at the end is no input, whatever its id', done, [u1, a1], [], 'i-2'],
];

describe('what of an input the conversation does not hold yet', () => {
  it.each(rows.map((row) => [row[0], row] as const))('%s', (_rule, [, stored, given, added, inputId]) => {
    expect(newMessages(stored, inputMessages(given), inputId)).toEqual(added);
  });

  it('compares images and files by their content', () => {
    const picture = (data: string): Message => ({
      role: 'user',
      content: [{ type: 'file', mediaType: 'image/png', data: { type: 'data', data } }],
    });
    const stored = inProgress({ messages: [picture('aaaa'), asked] });
    expect(newMessages(stored, [picture('aaaa')], undefined)).toEqual([]);
    expect(newMessages(stored, [picture('bbbb')], undefined)).toEqual([picture('bbbb')]);
  });
});

describe('the messages of an input', () => {
  it.each<readonly [string, AgentInput, readonly Message[]]>([
    ['a text', 'hi', [u1]],
    ['one message', u1, [u1]],
    ['messages', [u1, a1, u2], [u1, a1, u2]],
    [
      'the parts of one user message',
      [{ type: 'text', text: 'hi' }],
      [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    ],
    ['nothing', [], []],
    ['lone surrogates', 'a\ud800b', [user('a\ufffdb')]],
  ])('%s', (_what, given, messages) => {
    expect(inputMessages(given)).toEqual(messages);
  });

  it.each<readonly [string, unknown]>([
    ['a number', 5],
    ['null', null],
    ['undefined', undefined],
    ['a role that nobody has', [{ role: 'robot', content: 'hi' }]],
    ['a user message without content', { role: 'user' }],
    ['parts and messages mixed', [{ type: 'text', text: 'hi' }, u1]],
    ['a text part without a text', [{ type: 'text' }]],
    ['a file without a type', [{ type: 'file', data: { type: 'data', data: '' } }]],
    ['a file whose data nobody can read', [{ type: 'file', mediaType: 'image/png', data: 'aaaa' }]],
    [
      'a tool message with two results',
      { role: 'tool', content: [...(tool('a').content as []), ...(tool('b').content as [])] },
    ],
    ['a tool message without a result', { role: 'tool', content: [] }],
    [
      'a call without a name',
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'a', args: {} }] },
    ],
    ['a part of an unknown type', { role: 'assistant', content: [{ type: 'thought', text: 'hm' }] }],
    [
      'what JSON cannot say',
      [{ role: 'user', content: [{ type: 'text', text: 'hi', providerMetadata: { x: { y: 1n } } }] }],
    ],
  ])('refuses %s, naming the option', (_what, given) => {
    const refused = caught(() => inputMessages(given as AgentInput));
    expect(isSDKError(refused, 'LOUSHO_CONFIG_INVALID') && refused.details.option).toBe('input');
  });

  it("are the caller's no more: changing them later changes no run", () => {
    const mine = { role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] };
    const [message] = inputMessages(mine);
    (mine.content[0] as { text: string }).text = 'bye';
    expect(message).toEqual({ role: 'user', content: [{ type: 'text', text: 'hi' }] });
    expect(Object.isFrozen(message)).toBe(true);
  });
});

/** As a browser sends it back: cloned, keys in another order. */
function reordered(messages: readonly Message[]): readonly Message[] {
  return messages.map(({ role, content, ...rest }) => {
    return { content: structuredClone(content), ...rest, role } as Message;
  });
}

function caught(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}
