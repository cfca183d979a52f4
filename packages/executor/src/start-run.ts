/** The first checkpoint of a run: what is known of it before anything happened. */
import {
  CHECKPOINT_VERSION,
  appendFrozen,
  emptyUsage,
  freezeFresh,
  type AgentFingerprint,
  type InProgressCheckpoint,
  type JsonObject,
  type JsonValue,
  type Message,
  type Principal,
  type RunConfig,
} from '@lousho/contract';

/** Shared by all that hold nothing yet. */
export const none: readonly never[] = Object.freeze([]);

/** Replaced by the writer at each save. */
const NOT_SAVED_YET = new Date(0).toISOString();

/** What a run is from its first moment on. */
export interface RunFacts {
  readonly runId: string;
  readonly agentName: string;
  readonly activeAgent?: string | undefined;
  readonly fingerprint?: AgentFingerprint | undefined;
  readonly runConfig?: RunConfig | undefined;
  readonly principal?: Principal | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly businessState?: JsonValue | undefined;
}

/** `messages` is the conversation so far, `input` what this run answers. */
export function startRun(
  facts: RunFacts,
  conversation: { readonly messages: readonly Message[]; readonly inputIds: readonly string[] },
  input: { readonly messages: readonly Message[]; readonly inputId?: string | undefined },
): InProgressCheckpoint {
  return freezeFresh({
    version: CHECKPOINT_VERSION,
    status: 'in-progress',
    runId: facts.runId,
    agentName: facts.agentName,
    messages: appendFrozen(conversation.messages, input.messages),
    stepIndex: 0,
    usage: emptyUsage,
    runInput: { start: conversation.messages.length, count: input.messages.length },
    heldInput: none,
    inputIds: withInputId(conversation.inputIds, input.inputId),
    settledResults: none,
    startedToolCallIds: none,
    approvals: none,
    delegatedInFlight: none,
    ...(facts.fingerprint === undefined ? undefined : { fingerprint: facts.fingerprint }),
    ...(facts.activeAgent === undefined ? undefined : { activeAgent: facts.activeAgent }),
    ...(facts.businessState === undefined ? undefined : { businessState: facts.businessState }),
    ...(facts.runConfig === undefined ? undefined : { runConfig: facts.runConfig }),
    ...(facts.principal === undefined ? undefined : { principal: facts.principal }),
    ...(facts.metadata === undefined ? undefined : { metadata: facts.metadata }),
    savedAt: NOT_SAVED_YET,
  } satisfies InProgressCheckpoint);
}

export function withInputId(ids: readonly string[], inputId: string | undefined): readonly string[] {
  return inputId === undefined ? ids : appendFrozen(ids, [inputId]);
}
