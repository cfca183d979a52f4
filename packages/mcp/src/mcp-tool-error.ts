/** What a call throws when it has no result: the model reads a code, the server's tool, and what is known of the effect. */

export type McpToolErrorCode =
  /** The tool ran and answered with an error of its own. */
  | 'MCP_TOOL_FAILED'
  /** The server refused the request, or its answer was none. */
  | 'MCP_CALL_FAILED'
  /** There is no connection, and none could be made: nothing was sent. */
  | 'MCP_UNREACHABLE'
  /** The connection was lost after the call was sent. */
  | 'MCP_OUTCOME_UNKNOWN'
  /** In the middle of the call, the tool wants something that a person cannot be asked for. */
  | 'MCP_INPUT_REQUIRED'
  /** `close` was called. */
  | 'MCP_CLOSED';

/** The message starts with the code, because the message is all that a tool result keeps of an error. */
export class McpToolError extends Error {
  readonly code: McpToolErrorCode;

  constructor(code: McpToolErrorCode, sentence: string, options?: { readonly cause: unknown }) {
    super(`${code}: ${sentence}`, options);
    this.name = 'McpToolError';
    this.code = code;
  }
}
