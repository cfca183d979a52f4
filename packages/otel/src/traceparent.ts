/** W3C trace context as text, version 00: what a checkpoint keeps of a segment, for the next one to link to. */
import { isSpanContextValid, type SpanContext } from '@opentelemetry/api';

/** `undefined` for the span of a tracer that traces nothing. */
export function formatTraceparent(spanContext: SpanContext): string | undefined {
  if (!isSpanContextValid(spanContext)) return undefined;
  const { traceId, spanId, traceFlags } = spanContext;
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`;
}

/** `undefined` for what is none: another tracer may have written it. */
export function parseTraceparent(text: string): SpanContext | undefined {
  const [, traceId, spanId, flags] = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})/.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const spanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(spanContext) ? spanContext : undefined;
}
