/** The mark of a handoff that took place: it lies on the result of its call, so the transcript says who answered what. */
import type { ToolResultPart } from './messages.ts';

export interface HandoffMark {
  readonly from: string;
  readonly to: string;
}

/** The result as that of a handoff. */
export function withHandoffMark(result: ToolResultPart, { from, to }: HandoffMark): ToolResultPart {
  return { ...result, providerMetadata: { ...result.providerMetadata, lousho: { handoff: { from, to } } } };
}

/** `undefined` for every other result, that of a handoff which did not take place included. */
export function handoffMark({ providerMetadata }: ToolResultPart): HandoffMark | undefined {
  return (providerMetadata?.lousho as { readonly handoff?: HandoffMark } | undefined)?.handoff;
}
