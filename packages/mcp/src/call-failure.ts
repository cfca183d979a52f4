/** What a failed call says about its effect: was it sent at all, was it answered, or does nobody know. */

export type CallFailure =
  /** Nothing reached a tool: it may be called again. */
  | 'not-sent'
  /** The server answered, with an error. */
  | 'answered'
  /** It was sent, and no answer came. */
  | 'unknown';

/** Codes of system errors that come before the first byte. */
const NEVER_CONNECTED: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']);

/** Of HTTP: the server does not know this session (any more), as after its restart; it says so before it looks at the call. */
const UNKNOWN_SESSION: ReadonlySet<unknown> = new Set([400, 404]);

/** Of JSON-RPC, used by version 1 of the SDK for what it finds itself: connection closed, request timed out. */
const LOCAL_CODES: ReadonlySet<unknown> = new Set([-32_000, -32_001]);

/** Whatever is not understood is unknown. */
export function classifyFailure(error: unknown): CallFailure {
  const { code, status } = fieldsOf(error);
  if (isNotConnected(error) || neverConnected(error)) return 'not-sent';
  if (UNKNOWN_SESSION.has(status ?? code)) return 'not-sent';
  // Version 2 says of an answer that does not fit the schemas that it came.
  if (code === 'INVALID_RESULT' || code === 'UNSUPPORTED_RESULT_TYPE') return 'answered';
  const isHttpRefusal = (value: unknown): boolean => typeof value === 'number' && value > 400 && value < 500;
  if (isHttpRefusal(status) || isHttpRefusal(code)) return 'answered';
  return typeof code === 'number' && code <= -32_000 && code >= -33_000 && !LOCAL_CODES.has(code)
    ? 'answered'
    : 'unknown';
}

/** Version 1 has no code for it. */
function isNotConnected(error: unknown): boolean {
  return (
    fieldsOf(error).code === 'NOT_CONNECTED' || (error instanceof Error && error.message === 'Not connected')
  );
}

function neverConnected(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth += 1)
    if (NEVER_CONNECTED.has(fieldsOf(cause).code)) return true;
  return false;
}

function fieldsOf(error: unknown): { readonly code?: unknown; readonly status?: unknown } {
  return typeof error === 'object' && error !== null ? error : {};
}
