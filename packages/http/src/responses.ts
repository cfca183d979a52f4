/** What a request is answered with when it is not a stream: JSON, or a failure with its code. */
import { SDKError, type ErrorCode } from '@lousho/contract';

/** Of a request that is wrong, whatever is stored. */
const badRequest: readonly ErrorCode[] = [
  'LOUSHO_SESSION_ID_INVALID',
  'LOUSHO_CONFIG_INVALID',
  'LOUSHO_INPUT_EMPTY',
  'LOUSHO_TOOL_ARGS_INVALID',
];
const notFound: readonly ErrorCode[] = ['LOUSHO_APPROVAL_NOT_FOUND', 'LOUSHO_CHECKPOINT_NOT_FOUND'];
/** Of a request that comes at the wrong time: what is stored is as it was. */
const conflict: readonly ErrorCode[] = [
  'LOUSHO_SESSION_BUSY',
  'LOUSHO_SESSION_AWAITING_APPROVAL',
  'LOUSHO_SESSION_EXISTS',
  'LOUSHO_SESSION_TURN_FAILED',
  'LOUSHO_APPROVAL_DECIDED',
  'LOUSHO_APPROVAL_ORPHANED',
  'LOUSHO_AGENT_DRIFT',
  'LOUSHO_RESUME_TOOL_MISSING',
];

type HeaderList = { readonly [name: string]: string };

export function json(value: unknown, status = 200, headers: HeaderList = {}): Response {
  return Response.json(value, { status, headers: { 'cache-control': 'no-store', ...headers } });
}

export function failure(
  status: number,
  code: string,
  message: string,
  { details = {}, headers = {} }: { readonly details?: object; readonly headers?: HeaderList } = {},
): Response {
  return json({ error: { code, message, ...details } }, status, headers);
}

export function nothing(): Response {
  return new Response(null, { status: 204 });
}

/** `onError` of a handler: what it throws itself takes neither the request nor the process with it. */
export function reporter(onError: (error: unknown) => unknown = reportError): (error: unknown) => void {
  return (error) => {
    const told = async (): Promise<unknown> => onError(error);
    told().catch(reportError);
  };
}

function reportError(error: unknown): void {
  console.error('lousho: a request failed.', error);
}

export class BodyTooLarge extends Error {
  constructor(maxBodyBytes: number) {
    super(`The body has more than ${maxBodyBytes} bytes.`);
  }
}

const INTERNAL = 'The request failed; the server knows why.';

/** The words of what is not the client's fault may name what a client must not see: they are told to `onError` alone. */
export function failureOf(error: unknown, onError: (error: unknown) => void): Response {
  const status = statusOf(error);
  if (status >= 500) onError(error);
  if (error instanceof BodyTooLarge) return failure(status, 'BODY_TOO_LARGE', error.message);
  if (!(error instanceof SDKError)) return failure(status, 'INTERNAL', INTERNAL);
  const { code, message, details } = error;
  const { approvalId } = details as { readonly approvalId?: unknown };
  const about = typeof approvalId === 'string' ? { approvalId } : {};
  return failure(status, code, status >= 500 ? INTERNAL : message, { details: about });
}

function statusOf(error: unknown): number {
  if (error instanceof BodyTooLarge) return 413;
  if (!(error instanceof SDKError)) return 500;
  const { code } = error;
  if (badRequest.includes(code)) return 400;
  if (notFound.includes(code)) return 404;
  if (conflict.includes(code)) return 409;
  return code === 'LOUSHO_SHUTDOWN' ? 503 : 500;
}

/** Of an answer that failed in the middle of its stream. */
export function errorTextOf(error: unknown): string {
  if (!(error instanceof SDKError)) return INTERNAL;
  return `${error.code}: ${statusOf(error) >= 500 ? INTERNAL : error.message}`;
}
