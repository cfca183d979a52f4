/** Real AI SDK models against a server that speaks their wire formats: a run whose process dies between its two steps. */
import { createAgent, defineTool, type Agent, type AgentStore, type Message } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fromAiSdk } from '../src/index.ts';
import { models, type TestedModel } from './support/models.ts';
import { ANSWER } from './support/service.ts';
import { startWireServer, type WireBody, type WireServer } from './support/wire-server.ts';

let server: WireServer;
beforeAll(async () => {
  server = await startWireServer();
});
afterAll(() => server.close());

const IMAGE = 'iVBORw0KGgo=';
const IMAGE_URL = 'https://example.com/map.png';
const question: Message = {
  role: 'user',
  content: [
    { type: 'text', text: 'How is the weather?' },
    { type: 'file', mediaType: 'image/png', data: { type: 'data', data: IMAGE } },
    { type: 'file', mediaType: 'image/png', data: { type: 'url', url: IMAGE_URL } },
  ],
};

/** A process with an agent: its store, its model, its tools. */
interface Process {
  readonly agent: Agent;
  readonly store: AgentStore;
  readonly toolRuns: readonly string[];
}

function startProcess(model: TestedModel, store: AgentStore, fetchModel: typeof fetch = fetch): Process {
  const toolRuns: string[] = [];
  const weather = defineTool({
    name: 'weather',
    description: 'The weather in a city.',
    input: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    execute() {
      toolRuns.push('weather');
      return { celsius: 7 };
    },
  });
  const now = defineTool({
    name: 'now',
    description: 'The time.',
    input: { type: 'object', properties: {} },
    needsApproval: () => ({ deny: 'Not at night.' }),
    execute: () => '12:00',
  });
  const provider = fromAiSdk(model.create({ baseURL: server.baseUrl, apiKey: 'key', fetch: fetchModel }));
  const agent = createAgent({
    ...{ provider, store, tools: [weather, now], instructions: 'Be brief.' },
    modelSettings: { maxOutputTokens: 2_048, providerOptions: model.providerOptions },
  });
  return { agent, store, toolRuns };
}

/** The model gets no second request through: the process is dead before. */
function dyingFetch(): { readonly fetch: typeof fetch; readonly died: Promise<void> } {
  let die: () => void;
  const died = new Promise<void>((resolve) => (die = resolve));
  let count = 0;
  return {
    died,
    fetch(input, init) {
      count += 1;
      if (count === 1) return fetch(input, init);
      die();
      return new Promise(() => undefined);
    },
  };
}

/** What is on the disk when the process dies, read by another one. */
async function storeAfterDeath({ store }: Process): Promise<AgentStore> {
  const onDisk = JSON.stringify(await store.checkpoints?.load('run'));
  const other = memoryStore();
  await other.checkpoints.save('run', JSON.parse(onDisk) as never);
  return other;
}

const ways = [
  { way: 'generate', start: (agent: Agent, input: Message[]) => agent.send(input, { sessionId: 'run' }) },
  {
    way: 'stream',
    start: (agent: Agent, input: Message[]) => agent.stream(input, { sessionId: 'run' }).result,
  },
] as const;

const cases = models.flatMap((model) =>
  ways.map((way) => ({ ...way, model, name: `${model.name}, ${way.way}` })),
);

describe.each(cases)('$name', ({ model, start, way }) => {
  const { service } = model;

  it('sends every item of the first step again, in order, when the process died in between', async () => {
    server.answerWith(service.firstStep, service.secondStep);
    const dying = dyingFetch();
    const first = startProcess(model, memoryStore(), dying.fetch);
    const abandoned = start(first.agent, [question]).catch((error: unknown) => error);
    await dying.died;
    const second = startProcess(model, await storeAfterDeath(first));
    const result = await start(second.agent, []);

    expect(result).toMatchObject({ finishReason: 'stop', text: ANSWER, steps: 2 });
    expect(second.toolRuns).toEqual([]);
    expect(first.toolRuns).toEqual(['weather']);
    expect(server.requests).toHaveLength(2);
    const body = bodyOf(1);
    expect(body.stream === true).toBe(way === 'stream');
    expect(service.itemsIn(body)).toEqual(service.itemsOfFirstStep);
    const [weatherResult, nowResult] = service.resultsIn(body);
    expect([weatherResult?.id, nowResult?.id]).toEqual(callIdsOf(service.itemsOfFirstStep));
    expect(weatherResult?.content).toBe('{"celsius":7}');
    expect(nowResult?.content).toBe('Not at night.');

    await first.agent.shutdown({ timeoutMs: 0 });
    await abandoned;
  });

  it('sends the same after a death as without one', async () => {
    server.answerWith(service.firstStep, service.secondStep);
    await start(startProcess(model, memoryStore()).agent, [question]);
    const withoutDeath = bodyOf(1);

    server.answerWith(service.firstStep, service.secondStep);
    const dying = dyingFetch();
    const first = startProcess(model, memoryStore(), dying.fetch);
    const abandoned = start(first.agent, [question]).catch((error: unknown) => error);
    await dying.died;
    await start(startProcess(model, await storeAfterDeath(first)).agent, []);
    expect(bodyOf(1)).toEqual(withoutDeath);

    await first.agent.shutdown({ timeoutMs: 0 });
    await abandoned;
  });

  it('asks with images as they are, and counts all tokens', async () => {
    server.answerWith(service.firstStep, service.secondStep);
    const result = await start(startProcess(model, memoryStore()).agent, [question]);
    const asked = JSON.stringify(bodyOf(0));
    expect(asked).toContain(IMAGE);
    expect(asked).toContain(IMAGE_URL);
    expect(server.requests.map(({ path }) => path)).toEqual([service.path, service.path]);
    const isAnthropic = model.name.startsWith('anthropic');
    expect(result.usage).toMatchObject({
      inputTokens: 2 * (isAnthropic ? 105 : 100),
      outputTokens: 2 * 20,
      cachedInputTokens: 2 * 40,
      cacheWriteTokens: isAnthropic ? 2 * 5 : 0,
      reasoningTokens: isAnthropic ? 0 : 2 * 8,
    });
    expect(result.usage).not.toHaveProperty('estimated');
  });
});

// The compatible models of v2 read a response's text before its reasoning, and a stream's after it.
it.each(models.filter(({ name }) => name !== 'openai-compatible v2'))(
  'stores the same transcript streamed or not: $name',
  async (model) => {
    const transcripts = [];
    for (const { start } of ways) {
      server.answerWith(model.service.firstStep, model.service.secondStep);
      const store = memoryStore();
      await start(startProcess(model, store).agent, [question]);
      transcripts.push((await store.checkpoints.load('run'))?.messages);
    }
    expect(transcripts[1]).toEqual(transcripts[0]);
    expect(transcripts[0]).toHaveLength(6);
  },
);

function bodyOf(index: number): WireBody {
  const request = server.requests[index];
  if (request === undefined) throw new Error(`There were ${server.requests.length} requests.`);
  return request.body;
}

function callIdsOf(items: readonly unknown[]): readonly unknown[] {
  return (items as readonly { readonly id?: unknown; readonly name?: unknown }[])
    .filter(({ name }) => name !== undefined)
    .map(({ id }) => id);
}
