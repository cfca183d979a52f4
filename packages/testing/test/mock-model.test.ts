import { deepFreeze, type LLMRequest, type LLMStreamEvent, type Message } from '@lousho/contract';
import { expect, it } from 'vitest';
import { manualClock, mockModel } from '../src/index.ts';

const user: Message = { role: 'user', content: 'What is due?' };

function request(messages: readonly Message[] = [user], signal = new AbortController().signal): LLMRequest {
  return { messages, tools: [], providerTools: [], settings: {}, signal };
}

it('answers with the script, one response a call', async () => {
  const model = mockModel(['Nothing.', { text: 'Bye.', finishReason: 'length' }]);
  expect(model.remaining).toBe(2);
  expect(await model.generate(request())).toEqual({
    message: { role: 'assistant', content: [{ type: 'text', text: 'Nothing.' }] },
    finishReason: 'stop',
    usage: { inputTokens: 1, outputTokens: 1 },
  });
  expect(model.remaining).toBe(1);
  expect(await model.generate(request())).toMatchObject({ finishReason: 'length' });
});

it('makes calls with arguments and ids of their own, counted over its life', async () => {
  const model = mockModel([
    { reasoning: 'Hm.', text: 'Looking.', toolCalls: [{ name: 'a' }, { name: 'b', args: { n: 1 } }] },
    { toolCalls: [{ name: 'c', id: 'mine' }, { name: 'd' }], usage: {} },
  ]);
  const first = await model.generate(request());
  expect(first.finishReason).toBe('tool-calls');
  expect(first.message.content).toEqual([
    { type: 'reasoning', text: 'Hm.' },
    { type: 'text', text: 'Looking.' },
    { type: 'tool-call', toolCallId: 'call_1', toolName: 'a', args: {} },
    { type: 'tool-call', toolCallId: 'call_2', toolName: 'b', args: { n: 1 } },
  ]);
  const second = await model.generate(request());
  expect(second.usage).toEqual({});
  expect(second.message.content.map((part) => 'toolCallId' in part && part.toolCallId)).toEqual([
    'mine',
    'call_4',
  ]);
});

it('does not freeze or keep what the test gave it', async () => {
  const args = { n: 1 };
  const model = mockModel([{ toolCalls: [{ name: 'a', args }] }]);
  const response = await model.generate(request());
  args.n = 2;
  expect(response.message.content[0]).toMatchObject({ args: { n: 1 } });
});

it('goes on with the next response after one that was rejected', async () => {
  const model = mockModel([new Error('overloaded'), 'Here I am.']);
  await expect(model.generate(request())).rejects.toThrow('overloaded');
  expect(await model.generate(request())).toMatchObject({ message: { content: [{ text: 'Here I am.' }] } });
  expect(model.calls).toHaveLength(2);
});

it('asks a function of the script, and what that gives again', async () => {
  const model = mockModel([
    async ({ messages }) =>
      () =>
        `You said ${JSON.stringify(messages.at(-1)?.content)}.`,
    () => Promise.resolve(new Error('no')),
  ]);
  expect(await model.generate(request())).toMatchObject({
    message: { content: [{ text: 'You said "What is due?".' }] },
  });
  await expect(model.generate(request())).rejects.toThrow('no');
});

it('says how often it was called and what it was asked last when the script runs out', async () => {
  const model = mockModel(['one']);
  await model.generate(request());
  await expect(model.generate(request())).rejects.toMatchObject({
    code: 'LOUSHO_MOCK_EXHAUSTED',
    details: { calls: 2 },
    message: 'mockModel has no response left for call 2, after the user message "What is due?".',
  });
  expect(model.remaining).toBe(0);
  model.push('two');
  expect(model.remaining).toBe(1);
  expect(await model.generate(request())).toMatchObject({ message: { content: [{ text: 'two' }] } });
});

it('repeats the last response when told to, and has none to repeat in an empty script', async () => {
  const model = mockModel(['one', 'last'], { onExhausted: 'repeat-last' });
  const texts: unknown[] = [];
  for (let count = 0; count < 4; count += 1) texts.push((await model.generate(request())).message.content);
  expect(texts.map((content) => (content as { text: string }[])[0]?.text)).toEqual([
    'one',
    'last',
    'last',
    'last',
  ]);
  const empty = mockModel([], { onExhausted: 'repeat-last' });
  await expect(empty.generate(request())).rejects.toMatchObject({ code: 'LOUSHO_MOCK_EXHAUSTED' });
});

it('gives a request that is made again after a crash the same response and the same ids', async () => {
  const script = [
    { toolCalls: [{ name: 'a' }, { name: 'b' }] },
    { toolCalls: [{ name: 'c' }] },
    'done',
  ] as const;
  const before = mockModel(script, { answerBy: 'step' });
  const first = await before.generate(request());
  const messages: Message[] = [user, first.message];
  const second = await before.generate(request(messages));

  const after = mockModel(script, { answerBy: 'step' });
  expect(await after.generate(request(messages))).toEqual(second);
  expect(await before.generate(request(messages))).toEqual(second);
  expect(second.message.content[0]).toMatchObject({ toolCallId: 'call_3', toolName: 'c' });
  expect(after.remaining).toBe(1);
  await expect(
    after.generate(request([user, first.message, second.message, first.message])),
  ).rejects.toMatchObject({ code: 'LOUSHO_MOCK_EXHAUSTED', details: { calls: 2 } });
});

it('waits on the clock it was given', async () => {
  const clock = manualClock(0);
  const model = mockModel([{ text: 'late', delayMs: 1_000 }], { clock });
  let answeredAtMs: number | undefined;
  void model.generate(request()).then(() => (answeredAtMs = clock.wallMs()));
  await clock.advance(999);
  expect(answeredAtMs).toBeUndefined();
  await clock.advance(1);
  expect(answeredAtMs).toBe(1_000);
});

it('waits on the platform without one', async () => {
  expect(await mockModel([{ text: 'soon', delayMs: 1 }]).generate(request())).toMatchObject({
    finishReason: 'stop',
  });
});

it('ends with the reason of an abort, before and during a delay', async () => {
  const clock = manualClock();
  const model = mockModel(['never said', { text: 'late', delayMs: 1_000 }], { clock });
  const leave = new Error('left');
  await expect(model.generate(request([user], AbortSignal.abort(leave)))).rejects.toBe(leave);
  const controller = new AbortController();
  const waiting = expect(model.generate(request([user], controller.signal))).rejects.toBe(leave);
  await clock.advance(500);
  controller.abort(leave);
  await waiting;
});

it('goes on after an abort when the script says so', async () => {
  const clock = manualClock();
  const model = mockModel([{ text: 'two words', delayMs: 1_000, ignoreSignal: true }], { clock });
  const events = collect(model.stream(request([user], AbortSignal.abort())));
  await clock.advance(1_000);
  expect((await events).map(({ type }) => type)).toEqual(['text-delta', 'text-delta', 'finish']);
});

it('does not even notice an abort in the middle of its delay then', async () => {
  const clock = manualClock();
  const controller = new AbortController();
  const model = mockModel([{ text: 'late', delayMs: 1_000, ignoreSignal: true }], { clock });
  const answering = model.generate(request([user], controller.signal));
  await clock.advance(500);
  controller.abort();
  await clock.advance(500);
  expect(await answering).toMatchObject({ finishReason: 'stop' });
});

it('streams reasoning, text and arguments in words, then the response that generate would have given', async () => {
  const script = [
    {
      reasoning: 'Let me see.',
      text: ' Two  words\n',
      toolCalls: [{ name: 'note', args: { text: 'a b' } }],
    },
  ];
  const events = await collect(mockModel(script).stream(request()));
  expect(events).toEqual([
    { type: 'reasoning-delta', text: 'Let ' },
    { type: 'reasoning-delta', text: 'me ' },
    { type: 'reasoning-delta', text: 'see.' },
    { type: 'text-delta', text: ' Two  ' },
    { type: 'text-delta', text: 'words\n' },
    { type: 'tool-args-delta', toolCallId: 'call_1', toolName: 'note', text: '{"text":"a ' },
    { type: 'tool-args-delta', toolCallId: 'call_1', toolName: 'note', text: 'b"}' },
    { type: 'finish', response: await mockModel(script).generate(request()) },
  ]);
});

it('stops a stream between two words when the signal aborts', async () => {
  const controller = new AbortController();
  const seen: string[] = [];
  const reading = async (): Promise<void> => {
    for await (const event of mockModel(['one two three']).stream(request([user], controller.signal))) {
      if (event.type === 'text-delta') seen.push(event.text);
      controller.abort(new Error('left'));
    }
  };
  await expect(reading()).rejects.toThrow('left');
  expect(seen).toEqual(['one ']);
});

it('remembers what it was asked, frozen, and copies only what was not', async () => {
  const model = mockModel(['one', 'two']);
  const loose: Message[] = [{ role: 'user', content: 'first' }];
  await model.generate(request(loose));
  loose.push({ role: 'user', content: 'added later' });
  expect(model.calls[0]?.messages).toEqual([{ role: 'user', content: 'first' }]);
  expect(Object.isFrozen(model.calls[0]?.messages)).toBe(true);

  const frozen = deepFreeze([{ role: 'user' as const, content: 'frozen' }]);
  await model.generate(request(frozen));
  expect(model.calls[1]?.messages).toBe(frozen);
});

async function collect(stream: AsyncIterable<LLMStreamEvent>): Promise<LLMStreamEvent[]> {
  const events: LLMStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}
