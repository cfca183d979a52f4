/** What a person decides about, and the inbox that holds it until then. */
import type { ApprovalKind, Checkpoint } from './checkpoint.ts';
import type { JsonValue } from './json.ts';
import type { ToolCallPart } from './messages.ts';
import type { Principal } from './run.ts';

/** What a person is asked. */
export interface ApprovalQuestion {
  readonly text: string;
  readonly options?: readonly string[];
  /** Whether other answers than the options count. Default `true`. */
  readonly allowFreeText?: boolean;
}
/** What a person decides about. */
export interface ApprovalRequest {
  readonly id: string;
  readonly kind: ApprovalKind;
  /** Absent for a run without one. */
  readonly sessionId?: string;
  readonly runId: string;
  readonly agentName: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: JsonValue;
  readonly question?: ApprovalQuestion;
  /** Names of the sub-agents on the way to the call, outermost first. */
  readonly subagentPath?: readonly string[];
  readonly principal?: Principal;
  readonly createdAt: string;
  readonly expiresAt?: string;
}
/** A pause of a run without a checkpoint store, with everything that its resume needs. */
export interface ApprovalSnapshot {
  readonly checkpoints: readonly { readonly checkpointId: string; readonly checkpoint: Checkpoint }[];
  /** Absent in old data: the calls behind the paused one then get `not-run` results. */
  readonly remainingToolCalls?: readonly ToolCallPart[];
}
/** What lies in the inbox. The checkpoint decides; a record that no checkpoint waits on is orphaned. */
export interface ApprovalRecord extends ApprovalRequest {
  /** Where the run that waits is stored: the lead's checkpoint. */
  readonly checkpointId: string;
  readonly argsHash: string;
  /** Only of runs without a checkpoint store. */
  readonly snapshot?: ApprovalSnapshot;
}
/**
 * The inbox of pauses. It decides nothing, except which caller of `delete` was first.
 * A1: The approvals part throws only what C3 names, and a malformed id given to `load` or `delete` is an unknown one: people paste ids.
 */
export interface ApprovalStore {
  /**
   * A2: After `save` of an approval resolves, every handle loads and lists this record, and no other with its id.
   * A3: An approval comes back equal as JSON, with its snapshot and with fields that this release does not know.
   */
  save(record: ApprovalRecord): Promise<void>;
  /**
   * A4: `load` of an unknown approval gives `null` or `undefined`.
   * A5: `load` of a damaged approval is `LOUSHO_CHECKPOINT_CORRUPT`.
   */
  load(id: string): Promise<ApprovalRecord | null | undefined>;
  /**
   * A6: `list` of approvals puts the oldest `createdAt` first, equal times in the order of their ids; `sessionId` keeps those that name it.
   * A7: `list` of approvals leaves a damaged one out; the others are listed as ever.
   */
  list(options?: { readonly sessionId?: string | undefined }): Promise<readonly ApprovalRecord[]>;
  /**
   * A8: `delete` of an approval gives `true` to exactly one caller, whose call removed it; all others, and an unknown id, get `false`.
   * A9: After `delete` of an approval resolves, no handle loads or lists it.
   */
  delete(id: string): Promise<boolean>;
}

export interface ApprovalDecision {
  readonly id: string;
  readonly approved: boolean;
  /** The model reads it when the call is rejected. */
  readonly note?: string | undefined;
  /** Run the call with these instead. Ignored on a rejection. */
  readonly args?: JsonValue | undefined;
  /** Answer of a question. */
  readonly answer?: string | undefined;
  /** Who decided; stored. */
  readonly by?: string | undefined;
}
