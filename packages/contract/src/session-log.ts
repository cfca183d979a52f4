/** A session as the codec of logs takes it, so that a commit costs its own new messages however long the conversation is. */
import { CHECKPOINT_VERSION, type Checkpoint } from './checkpoint.ts';
import { deepFreeze } from './freeze.ts';
import type { SessionRecord } from './session.ts';

/** Where the fields of a session that a run does not have are kept. */
interface SessionState {
  readonly session: Omit<
    SessionRecord,
    'id' | 'revision' | 'messages' | 'inputIds' | 'businessState' | 'usage' | 'savedAt'
  >;
}

/** The revision stands where a run has its step. Unfinished, because it never ends: nobody prunes it by its age. */
export function sessionAsCheckpoint(record: SessionRecord): Checkpoint {
  const { id: _id, revision, messages, inputIds, businessState, usage, savedAt, ...session } = record;
  const state: Checkpoint & SessionState = {
    version: CHECKPOINT_VERSION,
    status: 'in-progress',
    runId: '',
    agentName: '',
    stepIndex: revision,
    ...{ messages, inputIds, usage, savedAt, session },
    ...(businessState === undefined ? undefined : { businessState }),
    runInput: noInput,
    heldInput: nothing,
    settledResults: nothing,
    startedToolCallIds: nothing,
    approvals: nothing,
    delegatedInFlight: nothing,
  };
  return deepFreeze(state);
}

/** The record again, not yet checked (`parseSessionRecord` does that). */
export function sessionOfCheckpoint(state: Checkpoint, id: string): SessionRecord {
  const { stepIndex, messages, inputIds, businessState, usage, savedAt } = state;
  return {
    ...(state as Checkpoint & SessionState).session,
    ...{ id, revision: stepIndex, messages, inputIds, usage, savedAt },
    ...(businessState === undefined ? undefined : { businessState }),
  };
}

const nothing: readonly never[] = Object.freeze([]);
const noInput = Object.freeze({ start: 0, count: 0 });
