/** Calls that wait for a person at a remote agent, as the run here has them: calls of its transcript that this process never runs. */
import {
  lastStep,
  resultOf,
  type ApprovalDecision,
  type ApprovalKind,
  type AssistantPart,
  type Decision,
  type JsonObject,
  type JsonValue,
  type Message,
  type PersonQuestion,
  type RemoteApproval,
  type ToolCallPart,
  type ToolResultPart,
} from '@lousho/contract';
import type { ResolvedAgent } from './resolved-agent.ts';

/** What the remote says of a call besides what it is. */
export type RemoteFacts = Omit<RemoteApproval, 'toolCallId' | 'toolName' | 'args'>;

/** Kept with the call, so that any process knows which one of the remote it is. */
export function remoteCallPart(approval: RemoteApproval): AssistantPart {
  const { toolCallId, toolName, args, ...facts } = approval;
  return { type: 'tool-call', toolCallId, toolName, args, providerMetadata: ours({ remoteCall: facts }) };
}

export function remoteFacts({ providerMetadata }: ToolCallPart): RemoteFacts | undefined {
  return providerMetadata?.lousho?.remoteCall as RemoteFacts | undefined;
}

/** Any model may write what it likes; only a remote agent has such calls. */
export function isRemoteCall({ remote }: Pick<ResolvedAgent, 'remote'>, call: ToolCallPart): boolean {
  return remote !== undefined && remoteFacts(call) !== undefined;
}

export function remoteGate(call: ToolCallPart): {
  readonly kind: ApprovalKind;
  readonly args: JsonValue;
  readonly asked?: PersonQuestion;
} {
  const { kind = 'tool', question } = remoteFacts(call) ?? {};
  return {
    kind,
    args: call.args,
    ...(question === undefined ? undefined : { asked: { question, state: null } }),
  };
}

/* ── Decisions on their way back ── */

/** The result of a decided call carries what the remote has to be told. */
export function withDecision(
  result: ToolResultPart,
  call: ToolCallPart,
  { approved, source, note, args, answer, by }: Decision,
): ToolResultPart {
  const why = note ?? (source === 'expiry' ? 'Nobody decided in time.' : undefined);
  const decision = {
    id: remoteFacts(call)?.id ?? '',
    approved,
    ...(why === undefined ? undefined : { note: why }),
    ...(args === undefined ? undefined : { args }),
    ...(answer === undefined ? undefined : { answer }),
    ...(by === undefined ? undefined : { by }),
  };
  return { ...result, providerMetadata: ours({ remoteDecision: decision }) };
}

/** Those that the last step ended with: none for a task that begins. */
export function decisionsIn(messages: readonly Message[]): readonly ApprovalDecision[] {
  const step = lastStep(messages);
  if (step === undefined) return [];
  return messages.slice(step.index + 1).flatMap((message) => {
    const decision = resultOf(message)?.providerMetadata?.lousho?.remoteDecision;
    return decision === undefined ? [] : [decision as unknown as ApprovalDecision];
  });
}

/* ── The conversation at the remote ── */

export function inRemoteSession(id: string): { readonly lousho: JsonObject } {
  return ours({ remoteSession: id });
}

/** Where the remote said what it said last. */
export function remoteSessionIn(messages: readonly Message[]): string | undefined {
  const said = messages.findLast(({ role }) => role === 'assistant');
  return said?.providerMetadata?.lousho?.remoteSession as string | undefined;
}

function ours(data: object): { readonly lousho: JsonObject } {
  return { lousho: data as JsonObject };
}
