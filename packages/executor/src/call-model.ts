/** One model response, streamed or not, with its retries. */
import {
  LLMProviderError,
  SDKError,
  type HookContext,
  type LLMRequest,
  type LLMResponse,
  type ModelCallInfo,
} from '@lousho/contract';
import { acceptResponse, droppedUsage, type AcceptedResponse } from './accept-response.ts';
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

export async function callModel(run: Run): Promise<ModelOutcome> {
  for (const hooks of run.engine.hooks) await hooks.beforeModel?.(hookContext(run));
  for (let attempt = 0; ; attempt += 1) {
    const tried = await tryOnce(run, attempt);
    if (tried.type !== 'failed') return tried;
    const delayMs = retryDelayMs(run, tried.error, attempt);
    if (delayMs === undefined) throw tried.error;
    run.events.emit('provider.retry', { attempt: attempt + 1, delayMs, error: errorEvent(tried.error) });
    await run.sleep(delayMs);
    if (run.stop.current !== undefined) return { type: 'abandoned' };
  }
}

type Attempt = ModelOutcome | { readonly type: 'failed'; readonly error: unknown };

async function tryOnce(run: Run, retries: number): Promise<Attempt> {
  const renewing = run.ensureHeld();
  if (renewing !== undefined) await renewing;
  // A hook or the renewal took its time: what must stop asks nothing any more.
  if (run.stop.current !== undefined) return { type: 'abandoned' };
  const heard = new HeardSoFar();
  const { signal, end } = callSignal(run, heard);
  const request = requestOf(run, signal);
  try {
    const response = await ask(run, request, heard, retries);
    if (response === givenUp) return whenDropped(run, request, heard);
    return { type: 'response', response, ...acceptResponse(response, request, modelIdOf(run)) };
  } catch (error) {
    return signal.aborted
      ? whenDropped(run, request, heard)
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

function whenDropped(run: Run, request: LLMRequest, heard: HeardSoFar): ModelOutcome {
  const stop = run.stop.current;
  if (stop?.type === 'shutdown' || stop?.type === 'lease-lost') return { type: 'abandoned' };
  const usage = droppedUsage(request.messages, heard.text);
  return { type: 'dropped', modelId: modelIdOf(run), usage, text: heard.text };
}

function modelIdOf(run: Run): string {
  return run.agent.model ?? run.agent.provider.modelId;
}

function ask(
  run: Run,
  request: LLMRequest,
  heard: HeardSoFar,
  retries: number,
): Promise<LLMResponse | typeof givenUp> {
  const { telemetry } = run.engine;
  const { signal } = request;
  if (telemetry.modelCall === undefined) return unlessAborted(signal, respond(run, request, heard));
  const isStreamed = run.isStreaming && run.agent.provider.stream !== undefined;
  const about: ModelCallInfo = { ...run.segmentInfo(), request, isStreamed, retries };
  if (telemetry.onFirstChunk !== undefined) heard.onFirst = () => telemetry.onFirstChunk?.(about);
  return telemetry.modelCall(about, async () => {
    const response = await unlessAborted(signal, respond(run, request, heard));
    if (response === givenUp) throw signal.reason;
    return response;
  });
}

/** Async: a provider in plain JavaScript may give its response, or throw, without a promise. */
async function respond(run: Run, request: LLMRequest, heard: HeardSoFar): Promise<LLMResponse> {
  const { provider } = run.agent;
  return run.isStreaming && provider.stream ? listen(run, request, heard) : provider.generate(request);
}

/** What the model said so far: a steer may only drop a response of which nothing was heard. */
class HeardSoFar {
  text = '';
  isAnything = false;
  onFirst: (() => void) | undefined;
}

async function listen(run: Run, request: LLMRequest, heard: HeardSoFar): Promise<LLMResponse> {
  let response: LLMResponse | undefined;
  for await (const event of run.agent.provider.stream?.(request) ?? []) {
    // Late words of a provider that ignores the abort.
    if (request.signal.aborted) break;
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

function requestOf(run: Run, signal: AbortSignal): LLMRequest {
  const { agent, engine } = run;
  return {
    ...(agent.model === undefined ? undefined : { model: agent.model }),
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

/** `undefined`: not tried again. What the provider asks for wins over our own doubling, unless it is too long to wait for. */
function retryDelayMs(run: Run, error: unknown, attempt: number): number | undefined {
  const { maxRetries, delayMs, maxDelayMs } = run.engine.retry;
  if (attempt >= maxRetries || !(error instanceof LLMProviderError) || !error.retryable) return undefined;
  const wantedMs = error.retryAfterMs ?? delayMs * 2 ** attempt;
  return wantedMs > maxDelayMs ? undefined : wantedMs;
}

/** Client errors fail the same way again, but for these: time-out, conflict, too early, too many requests. */
const RETRYABLE_CLIENT_STATUS = new Set([408, 409, 425, 429]);

/** An error of ours passes as it is; anything else that a provider throws is wrapped, and its HTTP status says whether to try again. */
function asProviderError(error: unknown): unknown {
  if (error instanceof SDKError) return error;
  const { message, status, statusCode, retryable } = (
    typeof error === 'object' && error !== null ? error : {}
  ) as {
    readonly message?: unknown;
    readonly status?: unknown;
    readonly statusCode?: unknown;
    readonly retryable?: unknown;
  };
  const httpStatus =
    typeof status === 'number' ? status : typeof statusCode === 'number' ? statusCode : undefined;
  const isClientError =
    httpStatus !== undefined &&
    httpStatus >= 400 &&
    httpStatus < 500 &&
    !RETRYABLE_CLIENT_STATUS.has(httpStatus);
  return new LLMProviderError(
    typeof message === 'string' ? message : String(error),
    {
      kind: httpStatus === undefined ? 'unknown' : 'api',
      retryable: typeof retryable === 'boolean' ? retryable : !isClientError,
      ...(httpStatus === undefined ? undefined : { status: httpStatus }),
    },
    { cause: error },
  );
}
