/** Every tool of a server, page by page. */
import type { McpClient, McpToolInfo } from './mcp-client.ts';

/** @throws what the client throws */
export async function listTools(client: McpClient): Promise<readonly McpToolInfo[]> {
  const tools: McpToolInfo[] = [];
  const seen = new Set<string>();
  for (let cursor: string | undefined; ;) {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
    // A cursor that comes again would lead in a circle.
    if (cursor === undefined || seen.has(cursor)) return tools;
    seen.add(cursor);
  }
}
