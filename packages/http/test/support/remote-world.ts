/** A lead here and a remote agent behind its routes, with a network between them that fails where a test says so. */
import { defineTool, type ExecutionResult, type JsonValue, type Tool } from '@lousho/contract';
import { createAgent, type Agent, type AgentConfig } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, mockModel, testPorts, type ManualClock, type MockResponse } from '@lousho/testing';
import { z } from 'zod';
import {
  createAgentRoutes,
  remoteAgent,
  type AgentRoutesOptions,
  type RemoteAgentOptions,
} from '../../src/index.ts';

export const sessionId = 'order-7';

/**
 * What the network does with one request: the remote never gets it, its answer is lost, or the line drops while it works. `-silently`: nobody
 * is told, and `fetch` never settles.
 */
export type Loss = 'request' | 'answer' | 'line' | 'request-silently' | 'answer-silently';

type Failure = Loss | Response | undefined;

interface Sent {
  readonly method: string;
  /** Below the base. */
  readonly path: string;
  readonly body: unknown;
  readonly headers: Headers;
}

export interface RemoteWorld {
  readonly clock: ManualClock;
  readonly remote: Agent;
  readonly model: ReturnType<typeof mockModel>;
  /** Arguments of every call that ran there. */
  readonly ran: JsonValue[];
  readonly sent: Sent[];
  readonly fetch: typeof fetch;
  /** Asked for each request, counted from 1: how it is lost, or what another server answers in the place of the remote. */
  fail(plan: (count: number, sent: Sent) => Failure | Promise<Failure>): void;
  /** Until the remote has done all that it was asked for. */
  rest(): Promise<void>;
}

/** The remote has `refund`, which a person must agree to, and `look`. */
export function givenRemote(
  script: readonly MockResponse[],
  {
    routes,
    tools = [],
    ...config
  }: Partial<AgentConfig> & {
    readonly routes?: Partial<AgentRoutesOptions>;
    readonly tools?: readonly Tool[];
  } = {},
): RemoteWorld {
  const clock = manualClock();
  const ran: JsonValue[] = [];
  const model = mockModel(script, { modelId: 'far-model', clock });
  const tool = (name: string, needsApproval: boolean): Tool =>
    defineTool({
      name,
      description: name,
      input: z.object({ cents: z.number().optional() }),
      needsApproval,
      execute(args) {
        ran.push(args as JsonValue);
        return `${name} done`;
      },
    });
  const remote = createAgent({
    ...{ name: 'far', provider: model, store: memoryStore(), ports: testPorts(clock) },
    tools: [tool('refund', true), tool('look', false), ...tools],
    ...config,
  });
  const handler = createAgentRoutes(remote, {
    authorize: () => true,
    basePath: '/agent',
    onError: () => undefined,
    ...routes,
  });
  const sent: Sent[] = [];
  const works: Promise<unknown>[] = [];
  let plan: Parameters<RemoteWorld['fail']>[0] = () => undefined;
  return {
    ...{ clock, remote, model, ran, sent },
    fail(next) {
      plan = next;
    },
    async rest() {
      await Promise.all(works);
    },
    async fetch(input, init) {
      const request = new Request(input, { ...init, signal: null });
      const { signal } = init ?? {};
      const text = await request.clone().text();
      const path = request.url.slice('http://far.example/agent/'.length);
      const about = {
        method: request.method,
        path,
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
        headers: request.headers,
      };
      sent.push(about);
      const loss = await plan(sent.length, about);
      if (loss instanceof Response) return loss;
      if (loss === 'request') throw new TypeError('fetch failed');
      if (loss === 'request-silently') return never();
      const work = handler(request);
      works.push(work);
      if (loss === 'line') throw new TypeError('terminated');
      if (loss === 'answer-silently') return never();
      const response = await unlessGone(work, signal ?? undefined);
      if (loss === 'answer') throw new TypeError('terminated');
      return response;
    },
  };
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** A client that goes away stops nothing. */
function unlessGone<Value>(work: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) reject(signal.reason as Error);
    signal?.addEventListener('abort', () => reject(signal.reason as Error));
    work.then(resolve, reject);
  });
}

export function far(world: Pick<RemoteWorld, 'fetch'>, more: Partial<RemoteAgentOptions> = {}) {
  return remoteAgent({
    ...{ name: 'far', description: 'Works far away.', url: 'http://far.example/agent/', fetch: world.fetch },
    ...more,
  });
}

/** A lead that gives tasks to the remote. */
export function givenLead(
  world: RemoteWorld,
  script: readonly MockResponse[],
  { remote = {}, ...config }: Partial<AgentConfig> & { readonly remote?: Partial<RemoteAgentOptions> } = {},
): Agent {
  return createAgent({
    ...{
      provider: mockModel(script, { answerBy: 'step' }),
      store: memoryStore(),
      ports: testPorts(world.clock),
    },
    subagents: [far(world, remote)],
    ...config,
  });
}

export const give = (more: { readonly [arg: string]: JsonValue } = {}): MockResponse => ({
  toolCalls: [{ name: 'task', args: { agent: 'far', prompt: 'Refund order 7.', ...more }, id: 'call_task' }],
});
export const refund = (cents = 9): MockResponse => ({
  toolCalls: [{ name: 'refund', args: { cents }, id: 'call_refund' }],
});

/** With the clock moving on for as long as it takes. */
export async function letPass<Value>(
  clock: ManualClock,
  promise: Promise<Value>,
  stepMs = 1_000,
): Promise<Value> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  promise.then(settle, settle);
  while (!isSettled) await clock.advance(stepMs);
  return promise;
}

export function taskResult({ toolCalls }: ExecutionResult): JsonValue | undefined {
  return toolCalls.find(({ toolName }) => toolName === 'task')?.result;
}

export function paused(result: ExecutionResult): string {
  if (result.finishReason !== 'awaiting-approval') throw new Error(`It ended ${result.finishReason}.`);
  return result.approvalId;
}
