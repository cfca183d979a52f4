/** A failed model call: the error that the run tells of, and how long to wait before the model is asked again. */
import { LLMProviderError, SDKError } from '@lousho/contract';
import type { Engine } from './run-options.ts';

/** `undefined`: not tried again. What the provider asks for wins over our own doubling, unless it is too long to wait for. */
export function retryDelayMs(
  { maxRetries, delayMs, maxDelayMs }: Engine['retry'],
  error: unknown,
  attempt: number,
): number | undefined {
  if (attempt >= maxRetries || !(error instanceof LLMProviderError) || !error.retryable) return undefined;
  const wantedMs = error.retryAfterMs ?? delayMs * 2 ** attempt;
  return wantedMs > maxDelayMs ? undefined : wantedMs;
}

/** Client errors fail the same way again, but for these: time-out, conflict, too early, too many requests. */
const RETRYABLE_CLIENT_STATUS = new Set([408, 409, 425, 429]);

/** An error of ours passes as it is; anything else that a provider throws is wrapped, and its HTTP status says whether to try again. */
export function asProviderError(error: unknown): unknown {
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
