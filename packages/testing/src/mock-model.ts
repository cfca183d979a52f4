/** A model that answers from a script and remembers what it was asked. */
import {
  deepFreeze,
  frozenCopy,
  isDeepFrozen,
  platformClock,
  SDKError,
  textOf,
  type AssistantPart,
  type Clock,
  type JsonValue,
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamEvent,
  type LLMUsage,
  type Message,
  type ModelFinishReason,
  type ToolCallPart,
} from '@lousho/contract';

/** One model response of a script. An `Error` is thrown; a function sees the request. `name` is the tool's. */
export type MockResponse =
  | string
  | Error
  | {
      readonly text?: string | undefined;
      readonly reasoning?: string | undefined;
      /** Ids default to `call_1`, `call_2`, ... over the model's life: the number of the call. `args` default to `{}`. */
      readonly toolCalls?:
        | readonly {
            readonly name: string;
            readonly args?: JsonValue | undefined;
            readonly id?: string | undefined;
          }[]
        | undefined;
      /** Default: `tool-calls` with calls, else `stop`. */
      readonly finishReason?: ModelFinishReason | undefined;
      /** Default: 1 input and 1 output token. `{}`: the provider reports none. */
      readonly usage?: LLMUsage | undefined;
      /** Before the response, or the first delta of a stream. */
      readonly delayMs?: number | undefined;
      /** Goes on after an abort, as bad providers do. */
      readonly ignoreSignal?: boolean | undefined;
    }
  | ((request: LLMRequest) => MockResponse | Promise<MockResponse>);
export interface MockModelOptions {
  /** Default `'mock'`. */
  readonly modelId?: string | undefined;
  /** `'call'`: each call takes the next response. `'step'`: a request with n assistant messages gets response n + 1, so one that is made again after a crash gets the same. Default `'call'`. */
  readonly answerBy?: 'call' | 'step' | undefined;
  /** Default `'throw'`: LOUSHO_MOCK_EXHAUSTED. */
  readonly onExhausted?: 'throw' | 'repeat-last' | undefined;
  /** Default: the platform's. */
  readonly clock?: Clock | undefined;
}
export interface MockModel extends LLMProvider {
  stream(request: LLMRequest): AsyncIterable<LLMStreamEvent>;
  /** Requests so far, frozen. */
  readonly calls: readonly LLMRequest[];
  /** Responses of the script that were not given yet. */
  readonly remaining: number;
  /** Adds to the end of the script. */
  push(...responses: readonly MockResponse[]): void;
}

type ScriptedResponse = Exclude<MockResponse, string | Error | ((request: LLMRequest) => unknown)>;
interface Answer {
  readonly scripted: ScriptedResponse;
  readonly response: LLMResponse;
}

/** @throws (both methods) what the script says, the reason of the request's signal, or LOUSHO_MOCK_EXHAUSTED when nothing is left. */
export function mockModel(script: readonly MockResponse[], options: MockModelOptions = {}): MockModel {
  const { modelId = 'mock', answerBy = 'call', onExhausted = 'throw', clock = platformClock } = options;
  const responses = [...script];
  const requests: LLMRequest[] = [];
  let givenCount = 0;
  let toolCallCount = 0;

  /** Each call takes its response at once, whatever becomes of the call: an aborted one has used it up. */
  async function answer(incoming: LLMRequest): Promise<Answer> {
    const request = frozenRequest(incoming);
    requests.push(request);
    const index = answerBy === 'call' ? givenCount : countAssistantMessages(request.messages);
    const next = responses[onExhausted === 'repeat-last' ? Math.min(index, responses.length - 1) : index];
    if (next === undefined) throw exhausted(request, requests.length);
    givenCount = Math.max(givenCount, Math.min(index + 1, responses.length));
    const scripted = await readScript(next, request);
    await untilAnswered(scripted, request.signal, clock);
    const callsBefore = answerBy === 'call' ? toolCallCount : countToolCalls(request.messages);
    toolCallCount = callsBefore + (scripted.toolCalls?.length ?? 0);
    return { scripted, response: responseOf(scripted, callsBefore) };
  }

  return {
    providerId: 'mock',
    modelId,
    async generate(request) {
      return (await answer(request)).response;
    },
    async *stream(request) {
      const { scripted, response } = await answer(request);
      for (const delta of deltasOf(response)) {
        if (scripted.ignoreSignal !== true) request.signal.throwIfAborted();
        yield delta;
      }
      yield { type: 'finish', response };
    },
    get calls() {
      return Object.freeze([...requests]);
    },
    get remaining() {
      return responses.length - givenCount;
    },
    push(...more) {
      responses.push(...more);
    },
  };
}

/** The request as it was at the call. What is frozen already is kept, so remembering a long run does not copy its transcript. */
function frozenRequest(request: LLMRequest): LLMRequest {
  const { messages, tools, providerTools, settings } = request;
  return Object.freeze({
    ...request,
    messages: isDeepFrozen(messages) ? messages : Object.freeze(messages.map(frozenCopy)),
    tools: frozenCopy(tools),
    providerTools: frozenCopy(providerTools),
    settings: frozenCopy(settings),
  });
}

async function readScript(response: MockResponse, request: LLMRequest): Promise<ScriptedResponse> {
  let read = response;
  while (typeof read === 'function') read = await read(request);
  if (read instanceof Error) throw read;
  return typeof read === 'string' ? { text: read } : read;
}

/** @throws the signal's reason when it aborts first. */
async function untilAnswered(scripted: ScriptedResponse, signal: AbortSignal, clock: Clock): Promise<void> {
  const { delayMs = 0, ignoreSignal = false } = scripted;
  if (!ignoreSignal) signal.throwIfAborted();
  if (delayMs <= 0) return;
  await new Promise<void>((resolve, reject) => {
    const stopWaiting = (): void => {
      cancelTimer();
      reject(signal.reason as Error);
    };
    const cancelTimer = clock.setTimer(() => {
      signal.removeEventListener('abort', stopWaiting);
      resolve();
    }, delayMs);
    if (!ignoreSignal) signal.addEventListener('abort', stopWaiting, { once: true });
  });
}

function responseOf(scripted: ScriptedResponse, callsBefore: number): LLMResponse {
  const { text = '', reasoning, toolCalls = [], usage = { inputTokens: 1, outputTokens: 1 } } = scripted;
  const content: AssistantPart[] = [
    ...(reasoning === undefined ? [] : [{ type: 'reasoning' as const, text: reasoning }]),
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...toolCalls.map((call, index): ToolCallPart => ({
      type: 'tool-call',
      toolCallId: call.id ?? `call_${callsBefore + index + 1}`,
      toolName: call.name,
      args: frozenCopy(call.args ?? {}),
    })),
  ];
  return deepFreeze({
    message: { role: 'assistant', content },
    finishReason: scripted.finishReason ?? (toolCalls.length > 0 ? 'tool-calls' : 'stop'),
    usage: frozenCopy(usage),
  });
}

function* deltasOf(response: LLMResponse): Iterable<LLMStreamEvent> {
  for (const part of response.message.content) {
    if (part.type === 'reasoning')
      for (const text of words(part.text)) yield { type: 'reasoning-delta', text };
    if (part.type === 'text') for (const text of words(part.text)) yield { type: 'text-delta', text };
    if (part.type !== 'tool-call') continue;
    const { toolCallId, toolName } = part;
    for (const text of words(JSON.stringify(part.args)))
      yield { type: 'tool-args-delta', toolCallId, toolName, text };
  }
}

/** The text cut behind each word; joined again it is the text. */
function words(text: string): readonly string[] {
  return text.match(/\s*\S+\s*|\s+/g) ?? [];
}

function countAssistantMessages(messages: readonly Message[]): number {
  return messages.filter((message) => message.role === 'assistant').length;
}

function countToolCalls(messages: readonly Message[]): number {
  let count = 0;
  for (const { role, content } of messages)
    if (role === 'assistant') count += content.filter((part) => part.type === 'tool-call').length;
  return count;
}

function exhausted(request: LLMRequest, calls: number): SDKError {
  const last = request.messages.at(-1);
  const asked = last === undefined ? 'with no message' : `after the ${last.role} message ${describe(last)}`;
  return new SDKError(
    'LOUSHO_MOCK_EXHAUSTED',
    { calls },
    { message: `mockModel has no response left for call ${calls}, ${asked}.` },
  );
}

function describe(message: Message): string {
  const text = message.role === 'tool' ? JSON.stringify(message.content[0].result) : textOf(message);
  return JSON.stringify(text.length <= 200 ? text : `${text.slice(0, 197)}...`);
}
