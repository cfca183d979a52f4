/** The tools of one MCP server, ready for an agent. */
import { ConfigurationError, defineTool, isSDKError, type JsonSchema, type Tool } from '@lousho/contract';
import { callMcpTool } from './call-mcp-tool.ts';
import { listTools } from './list-tools.ts';
import type { McpToolInfo } from './mcp-client.ts';
import { resolveOptions, type McpToolsOptions, type ResolvedOptions } from './options.ts';
import { toolNames } from './tool-names.ts';
import { toolPolicy } from './tool-policy.ts';

/** A list for `createAgent({ tools })`. */
export interface McpTools extends ReadonlyArray<Tool> {
  /** Tools of the server that cannot be called from here, by the server's own names, and why. */
  readonly leftOut: readonly { readonly name: string; readonly reason: string }[];
  /** Closes the connection, and with it a server that the client started. Calls fail with `MCP_CLOSED` from then on. */
  close(): Promise<void>;
  /** `close`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Connects, lists the server's tools once, and makes a tool of each. What a server changes about its tools later is seen by the next
 * `mcpTools`; a run that was saved before then reports it as drift.
 *
 * A call that fails is an `execution` failure whose text begins with an `McpToolErrorCode`.
 *
 * @throws LOUSHO_CONFIG_INVALID, and what `connect` and the listing throw
 */
export async function mcpTools(options: McpToolsOptions): Promise<McpTools> {
  const resolved = resolveOptions(options);
  const { connection } = resolved;
  try {
    const listed = await listTools(await connection.client());
    const { tools, leftOut } = await makeTools(chosen(listed, resolved), resolved);
    const close = (): Promise<void> => connection.close();
    return Object.assign(tools, { leftOut, close, [Symbol.asyncDispose]: close });
  } catch (error) {
    await connection.close();
    throw error;
  }
}

function chosen(
  listed: readonly McpToolInfo[],
  { include, exclude }: ResolvedOptions,
): readonly McpToolInfo[] {
  requireListed('include', include ?? [], listed);
  requireListed('exclude', exclude, listed);
  return listed.filter(({ name }) => include?.includes(name) !== false && !exclude.includes(name));
}

/** A name that is not there is mistyped, or means another tool since: what it was to keep out would be let in. */
function requireListed(option: string, names: readonly string[], listed: readonly McpToolInfo[]): void {
  for (const got of names) {
    if (listed.some(({ name }) => name === got)) continue;
    const want = `a list of tools of the server, which has ${listed.map(({ name }) => `"${name}"`).join(', ') || 'none'}`;
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
  }
}

async function makeTools(
  listed: readonly McpToolInfo[],
  options: ResolvedOptions,
): Promise<{ readonly tools: Tool[]; readonly leftOut: McpTools['leftOut'] }> {
  const names = await toolNames(
    options.prefix,
    listed.map(({ name }) => name),
  );
  const tools: Tool[] = [];
  const leftOut: { readonly name: string; readonly reason: string }[] = [];
  for (const info of listed) {
    const { name } = info;
    if (info.execution?.taskSupport === 'required') {
      leftOut.push({ name, reason: 'It runs as a task of the server only, and tasks are not supported.' });
      continue;
    }
    try {
      tools.push(makeTool(names.get(name) ?? name, info, options));
    } catch (error) {
      // A schema that we cannot use: the server's other tools are as good as before.
      if (!isSDKError(error, 'LOUSHO_CONFIG_INVALID') || !error.details.option.includes('.input'))
        throw error;
      leftOut.push({ name, reason: error.message });
    }
  }
  return { tools, leftOut };
}

function makeTool(name: string, info: McpToolInfo, options: ResolvedOptions): Tool {
  const { connection, limits, timeoutMs } = options;
  const call = { connection, limits, toolName: info.name };
  return defineTool({
    name,
    description: info.description ?? info.title ?? info.name,
    input: info.inputSchema as JsonSchema,
    ...toolPolicy(info, options),
    timeoutMs,
    // Our own limit counts plain bytes; in JSON, a control character has six.
    maxResultBytes: limits.maxBytes * 6 + 65_536,
    execute: (args, ctx) => callMcpTool(call, args, ctx),
  });
}
