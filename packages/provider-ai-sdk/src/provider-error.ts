/** What AI SDK models throw, as our provider error: what kind it is, whether it may pass, and how long to wait. */
import { LLMProviderError, platformClock, type LLMErrorDetails } from '@lousho/contract';

/** Fields of the errors of the AI SDK and of the error objects that services send inside a stream. All may be anything. */
interface ForeignError {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly statusCode?: unknown;
  readonly isRetryable?: unknown;
  readonly responseHeaders?: unknown;
  readonly data?: unknown;
  readonly responseBody?: unknown;
  readonly response?: unknown;
  readonly error?: unknown;
  readonly code?: unknown;
  readonly type?: unknown;
}

/** An abort of the request and an error of ours pass as they are. `isStreaming`: part of the answer may have come already. */
export function asProviderError(
  thrown: unknown,
  { signal, isStreaming }: { readonly signal: AbortSignal; readonly isStreaming: boolean },
): unknown {
  if (signal.aborted || thrown instanceof LLMProviderError) return thrown;
  const error = fieldsOf(thrown);
  return new LLMProviderError(messageOf(thrown, error), detailsOf(error, thrown, isStreaming), {
    cause: thrown,
  });
}

/** By name and by fields, not by class: every major of the AI SDK has classes of its own. */
function detailsOf(error: ForeignError, thrown: unknown, isStreaming: boolean): LLMErrorDetails {
  const providerCode = codeOf(error);
  const code = providerCode === undefined ? undefined : { providerCode };
  const name = typeof error.name === 'string' ? error.name : '';
  if (unsupportedErrors.has(name)) return { kind: 'unsupported', retryable: false };
  if (configErrors.has(name)) return { kind: 'config', retryable: false };
  if (invalidResponses.has(name)) return { kind: 'invalid-response', retryable: true };
  if (typeof error.statusCode === 'number') {
    const { statusCode: status } = error;
    // A service that said "all is well" and then sent half an answer, or none: the next one may be whole.
    if (status < 400)
      return {
        kind: isStreaming ? 'stream-interrupted' : 'invalid-response',
        retryable: true,
        status,
        ...code,
      };
    const retryable = error.isRetryable === true || mayPass(providerCode);
    return { kind: 'api', retryable, status, ...retryAfter(error), ...code };
  }
  // No status: `fetch` failed. Once the answer had begun, its connection broke.
  if (name === 'AI_APICallError' || name === 'AbortError' || name === 'TimeoutError')
    return { kind: 'network', retryable: true, ...code };
  if (isStreaming && thrown instanceof TypeError) return { kind: 'stream-interrupted', retryable: true };
  // An error that a service sent inside a stream, or something unknown. It may pass, unless its code says that the request is at fault.
  return { kind: providerCode === undefined ? 'unknown' : 'api', retryable: !isFault(providerCode), ...code };
}

const unsupportedErrors: ReadonlySet<string> = new Set([
  'AI_UnsupportedFunctionalityError',
  'AI_InvalidPromptError',
  'AI_InvalidArgumentError',
]);
const configErrors: ReadonlySet<string> = new Set([
  'AI_LoadAPIKeyError',
  'AI_LoadSettingError',
  'AI_NoSuchModelError',
]);
const invalidResponses: ReadonlySet<string> = new Set([
  'AI_EmptyResponseBodyError',
  'AI_InvalidResponseDataError',
  'AI_JSONParseError',
  'AI_NoContentGeneratedError',
  'AI_TypeValidationError',
]);

const faults =
  /invalid|not_found|permission|authentication|unauthorized|context_length|too_large|unsupported|quota|billing|policy/;
const passing = /server_error|overloaded|rate_limit|timeout|unavailable/;

function isFault(code: string | undefined): boolean {
  return code !== undefined && faults.test(code);
}

/** The models of OpenAI give a response that failed on its side the status of a wrong request. */
function mayPass(code: string | undefined): boolean {
  return code !== undefined && passing.test(code);
}

/** OpenAI has it in `code`, Anthropic in `type`, both mostly inside `error`; the type of an event is none. */
function codeOf(error: ForeignError): string | undefined {
  const codes = insideOf(error).flatMap(({ code, type }) => [code, type]);
  return codes.find(
    (code): code is string => typeof code === 'string' && code !== '' && !eventTypes.has(code),
  );
}

const eventTypes: ReadonlySet<string> = new Set(['error', 'response.failed']);

function messageOf(thrown: unknown, error: ForeignError): string {
  const messages = [error, ...insideOf(error)].map(({ message }) => message);
  const said = [...messages, thrown].find((text): text is string => typeof text === 'string' && text !== '');
  return said ?? 'The model call failed without saying why.';
}

/** Where services and the AI SDK put what a service said, the most exact first. */
function insideOf(error: ForeignError): readonly ForeignError[] {
  const { data, responseBody, response, error: inside } = error;
  return [
    ...[data, responseBody, response].map((body) => fieldsOf(fieldsOf(body).error)),
    fieldsOf(inside),
    error,
  ];
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date. */
function retryAfter({ responseHeaders }: ForeignError): { readonly retryAfterMs?: number } {
  const headers = fieldsOf(responseHeaders) as Readonly<Record<string, unknown>>;
  const waitsMs = [
    numberOf(headers['retry-after-ms']),
    numberOf(headers['retry-after']) * 1_000,
    Date.parse(String(headers['retry-after'])) - nowOf(headers.date),
  ];
  const retryAfterMs = waitsMs.find(Number.isFinite);
  return retryAfterMs === undefined ? {} : { retryAfterMs: Math.max(0, retryAfterMs) };
}

/** By the clock of the service, where it tells: ours may go wrong. */
function nowOf(date: unknown): number {
  const nowMs = Date.parse(String(date));
  return Number.isNaN(nowMs) ? platformClock.wallMs() : nowMs;
}

function numberOf(text: unknown): number {
  return typeof text === 'string' && text.trim() !== '' ? Number(text) : NaN;
}

function fieldsOf(value: unknown): ForeignError {
  return typeof value === 'object' && value !== null ? value : {};
}
