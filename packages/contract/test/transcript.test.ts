/** Reading a transcript: results belong to calls by their place, because a provider may use one id in every step. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  answeredCalls,
  deepFreeze,
  lastAssistantText,
  lastStep,
  ownCalls,
  resultOf,
  textOf,
  type AssistantMessage,
  type Message,
} from '../src/index.ts';
import { modelCalls, modelSays, resultFor, toolMessage, userSays } from './support/checkpoints.ts';

const byProvider: AssistantMessage = {
  role: 'assistant',
  content: [
    { type: 'text', text: 'Looking' },
    { type: 'tool-call', toolCallId: 'w', toolName: 'web', args: {}, providerExecuted: true },
    { type: 'tool-result', toolCallId: 'w', toolName: 'web', result: 1 },
    { type: 'reasoning', text: 'hidden' },
    { type: 'tool-call', toolCallId: 'a', toolName: 'look', args: {} },
    { type: 'text', text: ' closer' },
  ],
};

describe('lastStep', () => {
  it.each<readonly [string, readonly Message[]]>([
    ['is empty', []],
    ['ends in input', [modelCalls('a'), userSays('x')]],
    ['is input alone', [userSays('x')]],
    ['ends in instructions', [{ role: 'system', content: 's' }]],
    ['has results without a response', [toolMessage(resultFor('a'))]],
    ['has results behind input', [userSays('x'), toolMessage(resultFor('a'))]],
  ])('is none when the transcript %s', (_case, messages) => {
    expect(lastStep(messages)).toBeUndefined();
  });

  it('is the last response with its calls, and how many have their result', () => {
    const response = modelCalls('a', 'b', 'c');
    const messages = [userSays('x'), modelCalls('a'), toolMessage(resultFor('a')), response];
    const step = { index: 3, message: response, calls: response.content };
    expect(lastStep(messages)).toEqual({ ...step, answered: 0 });
    const results = [toolMessage(resultFor('a')), toolMessage(resultFor('b'))];
    expect(lastStep([...messages, ...results])).toEqual({ ...step, answered: 2 });
    expect(lastStep([modelSays('done')])).toMatchObject({ index: 0, calls: [], answered: 0 });
  });

  it('leaves out the calls that the provider ran', () => {
    expect(lastStep([byProvider])?.calls.map((call) => call.toolCallId)).toEqual(['a']);
  });
});

describe('ownCalls', () => {
  it('gives the calls that are ours, in call order, the same list each time', () => {
    const message = deepFreeze(modelCalls('b', 'a'));
    expect(ownCalls(message).map((call) => call.toolCallId)).toEqual(['b', 'a']);
    expect(ownCalls(message)).toBe(ownCalls(message));
  });
});

describe('textOf and lastAssistantText', () => {
  it.each<readonly [Message, string]>([
    [userSays('hi'), 'hi'],
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      'ab',
    ],
    [{ role: 'system', content: 's' }, 's'],
    [byProvider, 'Looking closer'],
    [modelCalls('a'), ''],
    [toolMessage(resultFor('a')), ''],
  ])('of %j is %j', (message, text) => {
    expect(textOf(message)).toBe(text);
  });

  it("is the last response's, also an empty one", () => {
    expect(lastAssistantText([])).toBe('');
    expect(lastAssistantText([userSays('x')])).toBe('');
    expect(lastAssistantText([modelSays('one'), userSays('x'), modelSays('two'), userSays('y')])).toBe('two');
    expect(lastAssistantText([modelSays('one'), modelCalls('a')])).toBe('');
  });
});

describe('resultOf', () => {
  it('is the result in a tool message, and nothing in any other', () => {
    const result = resultFor('a');
    expect(resultOf(toolMessage(result))).toBe(result);
    expect(resultOf(byProvider)).toBeUndefined();
    expect(resultOf(userSays('x'))).toBeUndefined();
  });
});

describe('answeredCalls', () => {
  it('pairs each result with its call by place, though every step uses the same ids', () => {
    const steps = fc.array(fc.record({ calls: fc.nat({ max: 3 }), answered: fc.nat({ max: 3 }) }), {
      maxLength: 6,
    });
    fc.assert(
      fc.property(steps, (made) => {
        const messages: Message[] = [userSays('go')];
        const expected: unknown[] = [];
        for (const [step, { calls, answered }] of made.entries()) {
          const response = modelCalls(...Array.from({ length: calls }, (_none, index) => `call_${index}`));
          messages.push(response);
          for (const call of ownCalls(response).slice(0, answered)) {
            const result = resultFor(call.toolCallId, step);
            expected.push({ call, result });
            messages.push(toolMessage(result));
          }
        }
        expect([...answeredCalls(messages)]).toEqual(expected);
      }),
    );
  });

  it('passes over a result that no call asked for', () => {
    const messages = [modelCalls('a'), toolMessage(resultFor('a', 1)), toolMessage(resultFor('b', 2))];
    expect([...answeredCalls(messages)].map(({ result }) => result.result)).toEqual([1]);
    expect([...answeredCalls([toolMessage(resultFor('a'))])]).toEqual([]);
  });

  it('does not count what the provider ran', () => {
    const pairs = [...answeredCalls([byProvider, toolMessage(resultFor('a'))])];
    expect(pairs.map(({ call }) => call.toolCallId)).toEqual(['a']);
  });
});
