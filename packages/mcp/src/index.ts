/** The tools of an MCP server, for Lousho agents. */
export { mcpTools, type McpTools } from './mcp-tools.ts';
export { type McpToolsOptions, type McpApproval, type McpInterrupted } from './options.ts';
export {
  type McpCallParams,
  type McpClient,
  type McpToolAnnotations,
  type McpToolInfo,
} from './mcp-client.ts';
export { McpToolError, type McpToolErrorCode } from './mcp-tool-error.ts';
