/** What we need of an MCP client, as a shape: the clients of both lines of the SDK fit, and neither is imported. */

/** What a server says about a tool. Hints: nobody checks them. */
export interface McpToolAnnotations {
  readonly readOnlyHint?: boolean | undefined;
  /** Absent counts as `true`. */
  readonly destructiveHint?: boolean | undefined;
  readonly idempotentHint?: boolean | undefined;
  readonly openWorldHint?: boolean | undefined;
}
/** A tool as the server lists it. */
export interface McpToolInfo {
  /** The server's own name. */
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: object;
  readonly annotations?: McpToolAnnotations | undefined;
  readonly execution?: { readonly taskSupport?: string | undefined } | undefined;
}
export interface McpCallParams {
  readonly name: string;
  readonly arguments?: Record<string, unknown>;
  readonly _meta?: Record<string, unknown>;
  /** What a person answered, and what the server wanted back with it. */
  readonly inputResponses?: Record<string, unknown>;
  readonly requestState?: string;
}
/** A connected client: `Client` of `@modelcontextprotocol/client` 2.x, or of `@modelcontextprotocol/sdk` 1.x. */
export interface McpClient {
  listTools(params?: {
    readonly cursor?: string;
  }): Promise<{ readonly tools: readonly McpToolInfo[]; readonly nextCursor?: string | undefined }>;
  /** Version 2 takes `(params, options)`, version 1 `(params, resultSchema, options)`. */
  callTool(params: McpCallParams, ...rest: never[]): Promise<unknown>;
  close(): Promise<void>;
  /** Called when the connection is closed, by whichever side. */
  onclose?: (() => void) | undefined;
}

interface RequestOptions {
  readonly signal: AbortSignal;
  /** Milliseconds. */
  readonly timeout: number;
}
interface Version2 {
  callTool(
    params: McpCallParams,
    options: RequestOptions & { readonly allowInputRequired: true },
  ): Promise<unknown>;
}
interface Version1 {
  callTool(params: McpCallParams, resultSchema: undefined, options: RequestOptions): Promise<unknown>;
}

/** Our own time-out ends a call, through `signal`; the client's would do it after a minute. As long as a timer can be. */
const NO_TIMEOUT_MS = 2_147_483_647;

/** @throws what the client throws */
export function requestCall(client: McpClient, params: McpCallParams, signal: AbortSignal): Promise<unknown> {
  const options = { signal, timeout: NO_TIMEOUT_MS };
  return isVersion2(client)
    ? client.callTool(params, { ...options, allowInputRequired: true })
    : (client as Version1).callTool(params, undefined, options);
}

/** Only version 2 negotiates which revision of the protocol is spoken. */
function isVersion2(client: McpClient): client is McpClient & Version2 {
  return 'getNegotiatedProtocolVersion' in client;
}
