/** How a span says that its work failed: a short word always, the sentence only when content may be recorded. */
import { LLMProviderError, SDKError, storedError } from '@lousho/contract';
import { SpanStatusCode, type Span } from '@opentelemetry/api';
import { OTHER_ERROR, attributes } from './conventions.ts';

/** What a provider calls it, its HTTP status, our code, or the name of the class: few values, and no content. */
export function errorType(error: unknown): string {
  if (error instanceof LLMProviderError) {
    const { providerCode, status, kind } = error.details;
    return providerCode ?? status?.toString() ?? kind;
  }
  if (error instanceof SDKError) return error.code;
  const { name, status, statusCode } = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly name?: unknown;
    readonly status?: unknown;
    readonly statusCode?: unknown;
  };
  const httpStatus = [status, statusCode].find((value) => typeof value === 'number');
  if (httpStatus !== undefined) return String(httpStatus);
  return typeof name === 'string' && name !== '' && name !== 'Error' ? name : OTHER_ERROR;
}

export function messageOf(error: unknown): string {
  return storedError(error).message;
}

/** `message`: the words of a tool, a provider or a person may be in it. */
export function markFailed(span: Span, type: string, message: string | undefined): void {
  span.setAttribute(attributes.errorType, type);
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? undefined : { message }) });
}
