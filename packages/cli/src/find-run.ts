/** From what a person types to what is stored: the id of a run, of a session, of an approval, or the key of a checkpoint. */
import {
  checkpointIdOfApproval,
  classifyCheckpointId,
  isCheckpointId,
  isSessionId,
  sessionOfCheckpoint,
  transcriptCheckpointId,
  turnCheckpointId,
  type AgentStore,
  type Checkpoint,
  type PendingKind,
  type SessionRecord,
} from '@lousho/contract';
import { CliError } from './cli-error.ts';

export type FoundRun =
  /** A run, or the turn of a session that is not over. */
  | {
      readonly type: 'run';
      /** What `agent.resume` takes. */
      readonly id: string;
      readonly kind: PendingKind | 'child';
      readonly checkpointId: string;
      readonly checkpoint: Checkpoint;
      readonly session?: SessionRecord;
    }
  /** A session without a turn under way. */
  | { readonly type: 'session'; readonly id: string; readonly session: SessionRecord };

/** A session counts before a run of the same id, as for `agent.resume`. @throws CliError LOUSHO_CLI_RUN_NOT_FOUND; what the store throws */
export async function findRun(store: AgentStore, typed: string): Promise<FoundRun> {
  const id = checkpointIdOfApproval(typed) ?? typed;
  const found = isCheckpointId(id)
    ? ((await findSession(store, id)) ?? (await findCheckpoint(store, id)))
    : undefined;
  if (found !== undefined) return found;
  throw new CliError('LOUSHO_CLI_RUN_NOT_FOUND', `The store has no run "${typed}".`, {
    hint: 'lousho runs list shows what it has.',
  });
}

async function findSession(store: AgentStore, id: string): Promise<FoundRun | undefined> {
  if (!isSessionId(id)) return undefined;
  const session = await loadSession(store, id);
  const checkpointId = turnCheckpointId(id, session?.turn ?? 0);
  const checkpoint = await store.checkpoints?.load(checkpointId);
  if (checkpoint) {
    const base = { type: 'run', id, kind: 'session', checkpointId, checkpoint } as const;
    return session === undefined ? base : { ...base, session };
  }
  return session && { type: 'session', id, session };
}

/** From the store's part for sessions, else from among its checkpoints. */
async function loadSession(store: AgentStore, id: string): Promise<SessionRecord | undefined> {
  if (store.sessions !== undefined) return (await store.sessions.load(id)) ?? undefined;
  const checkpoint = await store.checkpoints?.load(transcriptCheckpointId(id));
  return checkpoint ? sessionOfCheckpoint(checkpoint, id) : undefined;
}

async function findCheckpoint(store: AgentStore, checkpointId: string): Promise<FoundRun | undefined> {
  const checkpoint = await store.checkpoints?.load(checkpointId);
  if (!checkpoint) return undefined;
  const named = classifyCheckpointId(checkpointId);
  const stored = { type: 'run', checkpointId, checkpoint } as const;
  switch (named.kind) {
    case 'run':
      return { ...stored, id: checkpointId, kind: 'run' };
    case 'session':
      return { ...stored, id: named.sessionId, kind: 'session' };
    case 'child':
      return { ...stored, id: named.leadId, kind: 'child' };
    case 'bookkeeping':
      return undefined;
  }
}
