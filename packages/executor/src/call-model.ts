/** One model response, streamed or not, with its retries, and with other models when the first one fails. */
import {
  LLMProviderError,
  type HookContext,
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamEvent,
  type ModelCallInfo,
} from '@lousho/contract';
import { acceptResponse, droppedUsage, type AcceptedResponse } from './accept-response.ts';
import { asProviderError, retryDelayMs } from './model-failure.ts';
import type { Run } from './run.ts';
import { errorEvent } from './run-events.ts';
import { givenUp, unlessAborted } from './run-stop.ts';

export type ModelOutcome =
  | ({ readonly type: 'response'; readonly response: LLMResponse } & AcceptedResponse)
  /** A steer took its place before it said anything, or the run was aborted during it. */
  | {
      readonly type: 'dropped';
      readonly modelId: string;
      readonly usage: AcceptedResponse['usage'];
      /** What was heard of it. */
      readonly text: string;
    }
  /** The run stopped while no call was under way, or one was not waited for because the process goes away. */
  | { readonly type: 'abandoned' };

/** Who is asked: the agent's own model, or one that takes its place. */
interface Asked {
  readonly provider: LLMProvider;
  /** What the request names; absent: the provider's own. */
  readonly model: string | undefined;
  readonly modelId: string;
}

/** @throws the first failure that may pass, so that the run is resumed when one of the models is back; else the first one */
export async function callModel(run: Run): Promise<ModelOutcome> {
  for (const hooks of run.engine.hooks) await hooks.beforeModel?.(hookContext(run));
  const { provider, model } = run.agent;
  const fallbacks = run.engine.fallbackModels.map((other) => askedOf(other, undefined));
  const failures: unknown[] = [];
  let asked = askedOf(provider, model);
  for (;;) {
    const tried = await tryWithRetries(run, asked);
    if (tried.type !== 'failed') return tried;
    failures.push(tried.error);
    const next = fallbacks.shift();
    // Another model cannot mend what is no failure of a model.
    if (next === undefined || !(tried.error instanceof LLMProviderError)) throw worthResuming(failures);
    run.events.emit('provider.fallback', {
      from: asked.modelId,
      to: next.modelId,
      error: errorEvent(tried.error),
    });
    asked = next;
  }
}

function askedOf(provider: LLMProvider, model: string | undefined): Asked {
  return { provider, model, modelId: model ?? provider.modelId };
}

function worthResuming(failures: readonly unknown[]): unknown {
  return failures.find((error) => error instanceof LLMProviderError && error.retryable) ?? failures[0];
}

async function tryWithRetries(run: Run, asked: Asked): Promise<Attempt> {
  for (let attempt = 0; ; attempt += 1) {
    const tried = await tryOnce(run, asked, attempt);
    if (tried.type !== 'failed') return tried;
    const delayMs = retryDelayMs(run.engine.retry, tried.error, attempt);
    if (delayMs === undefined) return tried;
    run.events.emit('provider.retry', { attempt: attempt + 1, delayMs, error: errorEvent(tried.error) });
    await run.sleep(delayMs);
    if (run.stop.current !== undefined) return { type: 'abandoned' };
  }
}

type Attempt = ModelOutcome | { readonly type: 'failed'; readonly error: unknown };

async function tryOnce(run: Run, asked: Asked, retries: number): Promise<Attempt> {
  const renewing = run.ensureHeld();
  if (renewing !== undefined) await renewing;
  // A hook or the renewal took its time: what must stop asks nothing any more.
  if (run.stop.current !== undefined) return { type: 'abandoned' };
  const heard = new HeardSoFar();
  const { signal, end } = callSignal(run, heard);
  const request = requestOf(run, asked, signal);
  try {
    const response = await ask(run, asked, request, heard, retries);
    if (response === givenUp) return whenDropped(run, asked, request, heard);
    return { type: 'response', response, ...acceptResponse(response, request, asked.modelId) };
  } catch (error) {
    return signal.aborted
      ? whenDropped(run, asked, request, heard)
      : { type: 'failed', error: asProviderError(error) };
  } finally {
    end();
  }
}

/** The call's own signal when somebody holds the run's handle and may steer; else the run's. A steer drops a call that said nothing yet. */
function callSignal(run: Run, heard: HeardSoFar): { readonly signal: AbortSignal; readonly end: () => void } {
  const { stop, input } = run;
  if (!run.isStreaming) return { signal: stop.signal, end: nothingToEnd };
  const steered = new AbortController();
  const end = input.steersModelCall(() => {
    if (!heard.isAnything) steered.abort(STEERED);
    return !heard.isAnything;
  });
  return { signal: AbortSignal.any([stop.signal, steered.signal]), end };
}

const STEERED = new Error('The input of a steer takes the place of this model call.');

function nothingToEnd(): void {
  // The run's own signal outlives the call.
}

function whenDropped(run: Run, { modelId }: Asked, request: LLMRequest, heard: HeardSoFar): ModelOutcome {
  const stop = run.stop.current;
  if (stop?.type === 'shutdown' || stop?.type === 'lease-lost') return { type: 'abandoned' };
  const usage = droppedUsage(request.messages, heard.text);
  return { type: 'dropped', modelId, usage, text: heard.text };
}

function ask(
  run: Run,
  { provider, modelId }: Asked,
  request: LLMRequest,
  heard: HeardSoFar,
  retries: number,
): Promise<LLMResponse | typeof givenUp> {
  const { telemetry } = run.engine;
  const { signal } = request;
  if (telemetry.modelCall === undefined) return unlessAborted(signal, respond(run, provider, request, heard));
  const isStreamed = run.isStreaming && provider.stream !== undefined;
  const about: ModelCallInfo = {
    ...run.segmentInfo(),
    ...{ providerId: provider.providerId, modelId },
    ...{ request, isStreamed, retries },
  };
  if (telemetry.onFirstChunk !== undefined) heard.onFirst = () => telemetry.onFirstChunk?.(about);
  return telemetry.modelCall(about, async () => {
    const response = await unlessAborted(signal, respond(run, provider, request, heard));
    if (response === givenUp) throw signal.reason;
    return response;
  });
}

/** Async: a provider in plain JavaScript may give its response, or throw, without a promise. */
async function respond(
  run: Run,
  provider: LLMProvider,
  request: LLMRequest,
  heard: HeardSoFar,
): Promise<LLMResponse> {
  return run.isStreaming && provider.stream !== undefined
    ? listen(run, provider.stream(request), request.signal, heard)
    : provider.generate(request);
}

/** What the model said so far: a steer may only drop a response of which nothing was heard. */
class HeardSoFar {
  text = '';
  isAnything = false;
  onFirst: (() => void) | undefined;
}

async function listen(
  run: Run,
  stream: AsyncIterable<LLMStreamEvent>,
  signal: AbortSignal,
  heard: HeardSoFar,
): Promise<LLMResponse> {
  let response: LLMResponse | undefined;
  for await (const event of stream) {
    // Late words of a provider that ignores the abort.
    if (signal.aborted) break;
    if (!heard.isAnything) heard.onFirst?.();
    heard.isAnything = true;
    if (event.type === 'text-delta') {
      heard.text += event.text;
      run.events.emit('text.delta', { text: event.text });
    } else if (event.type === 'reasoning-delta') {
      run.events.emit('reasoning.delta', { text: event.text });
    } else if (event.type === 'finish') {
      response = event.response;
    }
  }
  if (response !== undefined) return response;
  throw new LLMProviderError('The stream ended without a response.', {
    kind: 'stream-interrupted',
    retryable: true,
  });
}

function requestOf(run: Run, { model }: Asked, signal: AbortSignal): LLMRequest {
  const { agent, engine } = run;
  return {
    ...(model === undefined ? undefined : { model }),
    messages: run.checkpoint.messages,
    tools: agent.llmTools,
    providerTools: agent.providerTools,
    settings: engine.modelSettings,
    signal,
  };
}

export function hookContext(run: Run): HookContext {
  const { runId, messages, metadata, principal, stepIndex } = run.checkpoint;
  return {
    runId,
    ...(run.sessionId === undefined ? undefined : { sessionId: run.sessionId }),
    agentName: run.agent.name,
    step: stepIndex,
    messages,
    metadata: metadata ?? {},
    ...(principal === undefined ? undefined : { principal }),
    ...(run.task === undefined ? undefined : { subagentPath: run.task.subagentPath }),
  };
}
