/** What a caller asks of a run, with everything that one execution of it needs. */
import type { ApprovalStore, CheckpointStore, JsonObject, JsonValue, Principal } from '@lousho/contract';
import type { Conversation } from './conversation.ts';
import type { GivenDecision } from './decide-approval.ts';
import type { RunRequest } from './open-run.ts';
import type { AgentSource } from './resolved-agent.ts';
import type { RunEvents } from './run-events.ts';
import type { RunInput } from './run-input.ts';
import type { Engine } from './run-options.ts';
import type { TaskPlace } from './task-place.ts';
import type { WhenBusy } from './run-queue.ts';
import type { RunStop } from './run-stop.ts';

export interface RunOrder {
  /** The key in the store. */
  readonly checkpointId: string;
  /** What callers know it by; absent for a run without one. */
  readonly sessionId: string | undefined;
  readonly request: RunRequest;
  readonly decision?: GivenDecision | undefined;
  /** Where the record of that decision lies. */
  readonly inbox?: ApprovalStore | undefined;
  readonly store: CheckpointStore;
  /** Whether the store dies with the run. */
  readonly isEphemeral: boolean;
  readonly approvals: ApprovalStore | undefined;
  /** Of a run that is a turn of one. */
  readonly conversation?: Conversation | undefined;
  /** Asked before a run begins under an id that has none. @throws what refuses it */
  readonly beforeNew?: (() => Promise<void>) | undefined;
  /** Makes the run stored before its first model call, and is told then: from here on it is found after a crash. @throws what rejects the run */
  readonly onBegun?: (() => Promise<void>) | undefined;
  readonly source: AgentSource;
  readonly engine: Engine;
  readonly metadata?: JsonObject | undefined;
  readonly principal?: Principal | undefined;
  readonly businessState?: JsonValue | undefined;
  readonly events: RunEvents;
  readonly input: RunInput;
  readonly stop: RunStop;
  readonly isStreaming: boolean;
  readonly whenBusy: WhenBusy;
  /** How long to wait for a lease: that another decision holds, or of a dead process that ran the sub-agent. */
  readonly leaseWaitMs: number;
  /** Set for the run of a sub-agent. */
  readonly task?: TaskPlace | undefined;
}
