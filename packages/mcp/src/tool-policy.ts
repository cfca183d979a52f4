/** What a server says about its tool → who must agree before it runs, and whether a resume may run it again. */
import type { NeedsApproval, OnInterrupted } from '@lousho/contract';
import type { McpToolInfo } from './mcp-client.ts';
import type { ResolvedOptions } from './options.ts';

export interface ToolPolicy {
  readonly needsApproval: NeedsApproval;
  readonly onInterrupted: Extract<OnInterrupted, string>;
}

export function toolPolicy(
  tool: McpToolInfo,
  options: Pick<ResolvedOptions, 'approve' | 'trust' | 'onInterrupted'>,
): ToolPolicy {
  const { approve, trust, onInterrupted } = options;
  const { readOnlyHint, destructiveHint, idempotentHint } = tool.annotations ?? {};
  const isReadOnly = readOnlyHint === true;
  // Only a server that is trusted is believed that nothing happens twice.
  const mayRunAgain = trust && (isReadOnly || idempotentHint === true);
  return {
    needsApproval: gateOf(tool, approve, isReadOnly, destructiveHint !== false),
    onInterrupted:
      typeof onInterrupted === 'function'
        ? onInterrupted(tool)
        : (onInterrupted ?? (mayRunAgain ? 'retry' : 'never')),
  };
}

function gateOf(
  tool: McpToolInfo,
  approve: ResolvedOptions['approve'],
  isReadOnly: boolean,
  isDestructive: boolean,
): NeedsApproval {
  switch (approve) {
    case 'always':
      return true;
    case 'never':
      return false;
    case 'unless-read-only':
      return !isReadOnly;
    case 'destructive':
      return !isReadOnly && isDestructive;
    default:
      return approve(tool);
  }
}
