/** What clients send, read with suspicion. */
import { ConfigurationError, type ApprovalDecision, type JsonValue } from '@lousho/contract';
import { BodyTooLarge } from './responses.ts';

export type JsonFields = { readonly [key: string]: unknown };

/** @throws synchronously LOUSHO_CONFIG_INVALID; what it gives throws that for a body that is no object, and `BodyTooLarge` */
export function bodyReader(maxBodyBytes = 20 * 1024 * 1024): (request: Request) => Promise<JsonFields> {
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1)
    refuse('maxBodyBytes', maxBodyBytes, 'a whole number of bytes, 1 or more');
  return async (request) => {
    const text = await textOf(request, maxBodyBytes);
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      refuse('body', 'no JSON', 'JSON');
    }
    return requireObject('body', body);
  };
}

/** Counted as it comes: who sends it may be a stranger, and what it says of its length may be wrong. */
export async function textOf({ body }: Request | Response, maxBodyBytes: number): Promise<string> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  let byteCount = 0;
  const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    byteCount += value.byteLength;
    // Not cancelled: with node:http that would end the connection before the answer.
    if (byteCount > maxBodyBytes) throw new BodyTooLarge(maxBodyBytes);
    text += decoder.decode(value, { stream: true });
  }
}

export function requireObject(option: string, value: unknown): JsonFields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(option, value, 'an object');
  return value as JsonFields;
}

export function refuse(option: string, got: unknown, want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
}

/**
 * What is wrong with it, the agent says. @param may `'by'`: a service that decides for others names them; who sits before a page does not.
 * @throws LOUSHO_CONFIG_INVALID
 */
export function readDecision(body: JsonFields, may?: 'by'): Omit<ApprovalDecision, 'id'> {
  const { approved, args, answer, note, reason = note, by, ...others } = body;
  if (by !== undefined && may === undefined) refuse('by', by, 'left out: it is no part of a decision');
  for (const name of Object.keys(others)) refuse(name, others[name], 'left out: it is no part of a decision');
  return {
    approved: approved as boolean,
    ...(args === undefined ? undefined : { args: args as JsonValue }),
    ...(answer === undefined ? undefined : { answer: answer as string }),
    ...(reason === undefined ? undefined : { note: reason as string }),
    ...(by === undefined ? undefined : { by: by as string }),
  };
}
