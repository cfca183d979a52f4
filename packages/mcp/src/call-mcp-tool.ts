/** One call of a server's tool. What may have been sent is never sent again. */
import {
  askPerson,
  storedError,
  type JsonObject,
  type JsonValue,
  type PersonQuestion,
  type ToolContext,
} from '@lousho/contract';
import { classifyFailure } from './call-failure.ts';
import type { Connection } from './connection.ts';
import { firstInput, nextInput, type InputParams } from './input-required.ts';
import { requestCall, type McpCallParams, type McpClient } from './mcp-client.ts';
import { McpToolError } from './mcp-tool-error.ts';
import { readAnswer, type ResultLimits } from './result-json.ts';

export interface ServerCall {
  readonly connection: Connection;
  /** The server's own name of the tool. */
  readonly toolName: string;
  readonly limits: ResultLimits;
}

/** @throws McpToolError, and what the client throws when the run was aborted */
export async function callMcpTool(
  call: ServerCall,
  args: JsonObject,
  ctx: ToolContext,
): Promise<JsonValue | PersonQuestion> {
  const input = ctx.answer === undefined ? undefined : nextInput(ctx.answer);
  if (input?.type === 'ask') return askPerson(input.question, input.state);
  const params = {
    name: call.toolName,
    arguments: { ...args },
    // So that a server can tell that a call is the one that it has had before.
    _meta: { 'lousho/idempotencyKey': ctx.idempotencyKey, 'lousho/toolCallId': ctx.toolCallId },
  };
  const answer = readAnswer(await sendInput(call, params, input?.input, ctx.signal), call.limits);
  switch (answer.type) {
    case 'result':
      return answer.value;
    case 'error':
      throw new McpToolError('MCP_TOOL_FAILED', answer.text);
    case 'input-required':
      return askFirst(call, answer.asked);
  }
}

/** The server waits for nobody: it gets its call again, with the answers and what it wanted back. */
function askFirst({ toolName }: ServerCall, asked: Record<string, unknown>): PersonQuestion {
  const first = firstInput(asked);
  if (first?.type === 'ask') return askPerson(first.question, first.state);
  throw new McpToolError(
    'MCP_INPUT_REQUIRED',
    `"${toolName}" asks for what a person cannot give here, and was left in the middle of the call.`,
  );
}

async function sendInput(
  call: ServerCall,
  params: McpCallParams,
  input: InputParams | undefined,
  signal: AbortSignal,
): Promise<unknown> {
  if (input === undefined) return send(call, params, signal);
  try {
    return await send(call, { ...params, ...input }, signal);
  } catch (error) {
    // A person may take longer than the server lets its state live. It refused the call unread: from the start, which asks anew.
    if (!isStateRefused(error)) throw error;
    return send(call, params, signal);
  }
}

const INVALID_PARAMS = -32_602;

function isStateRefused(error: unknown): boolean {
  if (!(error instanceof McpToolError) || !(error.cause instanceof Error)) return false;
  return Reflect.get(error.cause, 'code') === INVALID_PARAMS && error.cause.message.includes('requestState');
}

async function send(call: ServerCall, params: McpCallParams, signal: AbortSignal): Promise<unknown> {
  const client = await connected(call);
  try {
    return await requestCall(client, params, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    if (classifyFailure(error) !== 'not-sent') throw asToolError(call, error);
    await call.connection.drop(client);
  }
  // Nothing was sent: once more, over a new connection.
  const again = await connected(call);
  try {
    return await requestCall(again, params, signal);
  } catch (error) {
    throw signal.aborted ? error : asToolError(call, error);
  }
}

async function connected(call: ServerCall): Promise<McpClient> {
  try {
    return await call.connection.client();
  } catch (error) {
    throw error instanceof McpToolError ? error : unreachable(call, error);
  }
}

function asToolError(call: ServerCall, error: unknown): McpToolError {
  const said = storedError(error).message;
  switch (classifyFailure(error)) {
    case 'not-sent':
      return unreachable(call, error);
    case 'answered':
      return new McpToolError('MCP_CALL_FAILED', `The server did not do "${call.toolName}": ${said}`, {
        cause: error,
      });
    case 'unknown':
      return new McpToolError(
        'MCP_OUTCOME_UNKNOWN',
        `The connection to the server was lost while "${call.toolName}" ran (${said}). It may or may not have taken effect; check before trying again.`,
        { cause: error },
      );
  }
}

function unreachable({ toolName }: ServerCall, error: unknown): McpToolError {
  const said = storedError(error).message;
  return new McpToolError(
    'MCP_UNREACHABLE',
    `There is no connection to the server of "${toolName}" (${said}). The call was not sent.`,
    { cause: error },
  );
}
