/** What clients send, read with suspicion. */
import { ConfigurationError, type ApprovalDecision, type JsonValue } from '@lousho/contract';

export type JsonFields = { readonly [key: string]: unknown };

/** @throws LOUSHO_CONFIG_INVALID */
export async function readBody(request: Request): Promise<JsonFields> {
  let body: unknown;
  try {
    body = await request.json();
  } catch {
    refuse('body', 'no JSON', 'JSON');
  }
  return requireObject('body', body);
}

export function requireObject(option: string, value: unknown): JsonFields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(option, value, 'an object');
  return value as JsonFields;
}

export function refuse(option: string, got: unknown, want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
}

/** What is wrong with it, the agent says; who decided is not the client's to say. @throws LOUSHO_CONFIG_INVALID */
export async function readDecision(request: Request): Promise<Omit<ApprovalDecision, 'id' | 'by'>> {
  const { approved, args, answer, note, reason = note, ...others } = await readBody(request);
  for (const name of Object.keys(others)) refuse(name, others[name], 'left out: it is no part of a decision');
  return {
    approved: approved as boolean,
    ...(args === undefined ? undefined : { args: args as JsonValue }),
    ...(answer === undefined ? undefined : { answer: answer as string }),
    ...(reason === undefined ? undefined : { note: reason as string }),
  };
}
