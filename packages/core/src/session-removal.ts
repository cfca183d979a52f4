/** Dropping the unfinished turn of a session, or the whole session. Nobody executes the turn meanwhile. */
import {
  classifyCheckpointId,
  isSDKError,
  turnCheckpointId,
  type Checkpoint,
  type SessionRecord,
} from '@lousho/contract';
import { awaitingApproval, exclusively, isOver, loadOrDamaged } from '@lousho/executor/wiring';
import type { AgentParts } from './agent-config.ts';
import { dropRun, forgetTasks } from './drop-run.ts';
import { SessionTurn } from './session-turn.ts';
import { clearedTranscript, loadTranscript } from './transcripts.ts';

/** `false` when there was no unfinished turn. @throws LOUSHO_SESSION_BUSY while it runs */
export async function discardTurn(parts: AgentParts, sessionId: string): Promise<boolean> {
  for (;;) {
    const { turn } = await loadTranscript(parts.sessions.transcripts, sessionId);
    const isDropped = await discardIfCurrent(parts, sessionId, turn);
    if (isDropped !== undefined) return isDropped;
  }
}

/** `undefined`: somebody committed this turn meanwhile, and another one is next. */
async function discardIfCurrent(
  parts: AgentParts,
  sessionId: string,
  turn: number,
): Promise<boolean | undefined> {
  const { sessions, engine } = parts;
  const conversation = new SessionTurn(sessions, sessionId, turn, engine.ports.clock);
  const { checkpointId } = conversation;
  return exclusively({ checkpointId, store: sessions.turns, engine }, async (lease) => {
    if ((await conversation.open()) === undefined) return undefined;
    const stored = await loadOrDamaged(sessions.turns, checkpointId);
    if (stored === null) return false;
    if (stored !== 'damaged' && isOver(stored)) {
      // It is over: nothing of it is unfinished, it only has to get into the transcript.
      await conversation.settle(stored, lease);
      return false;
    }
    await dropTurn(parts, sessionId, checkpointId);
    return true;
  });
}

/** @throws LOUSHO_SESSION_BUSY while a turn runs, SessionAwaitingApprovalError while one waits for a person; then nothing is gone */
export async function clearSession(parts: AgentParts, sessionId: string): Promise<void> {
  for (;;) {
    const record = await readable(loadTranscript(parts.sessions.transcripts, sessionId));
    if (record === undefined) return clearDamaged(parts, sessionId);
    if (await clearIfCurrent(parts, record)) return;
  }
}

/** `false`: somebody committed a turn or cleared it meanwhile. */
function clearIfCurrent(parts: AgentParts, record: SessionRecord): Promise<boolean> {
  const { transcripts, turns } = parts.sessions;
  const { id: sessionId, turn, revision } = record;
  const id = turnCheckpointId(sessionId, turn);
  return whileNobodyExecutes(parts, [id], async () => {
    const stored = await refusePaused(parts, sessionId, id);
    if (stored === null && revision === 0) return true;
    // 1. What a crash left of the last committed turn, and what was said in tasks, before what names them. Crash behind it: the conversation
    // is as it was, but for its tasks.
    if (turn > 0) await turns.delete(turnCheckpointId(sessionId, turn - 1));
    await forgetTasks(parts, record.messages);
    // 2. The transcript. It is emptied, not deleted: its revision and its turns count on, so that a process which stood still meanwhile can
    // neither commit a turn of before nor take a new one for it. Crash behind it: the turn is a leftover, which the next one removes.
    const cleared = clearedTranscript(record, parts.engine.ports.clock);
    if (!(await transcripts.saveIfRevision(cleared, revision))) return false;
    // 3. The unfinished turn.
    await dropTurn(parts, sessionId, id);
    return true;
  });
}

/** Nobody can say which turn is next, so all that are stored go. */
async function clearDamaged(parts: AgentParts, sessionId: string): Promise<void> {
  const ids = await storedTurnIds(parts, sessionId);
  await whileNobodyExecutes(parts, ids, async () => {
    for (const id of ids) await refusePaused(parts, sessionId, id);
    // 1. The turns. Crash behind it: the transcript is damaged as before, and nobody begins a turn.
    for (const id of ids) await dropTurn(parts, sessionId, id);
    // 2. The transcript.
    await parts.sessions.transcripts.delete(sessionId);
  });
}

async function refusePaused(
  parts: AgentParts,
  sessionId: string,
  id: string,
): Promise<Checkpoint | 'damaged' | null> {
  const stored = await loadOrDamaged(parts.sessions.turns, id);
  if (stored !== null && stored !== 'damaged' && stored.status === 'awaiting-approval')
    throw awaitingApproval(sessionId, stored);
  return stored;
}

/** Of several turns one after the other. */
function whileNobodyExecutes<Value>(
  parts: AgentParts,
  [id, ...others]: readonly string[],
  work: () => Promise<Value>,
): Promise<Value> {
  if (id === undefined) return work();
  const { sessions, engine } = parts;
  return exclusively({ checkpointId: id, store: sessions.turns, engine }, () =>
    whileNobodyExecutes(parts, others, work),
  );
}

/** `undefined` when it is damaged. */
async function readable<Value>(loading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await loading;
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT')) return undefined;
    throw error;
  }
}

/** As far as the store lists them. */
async function storedTurnIds(
  { sessions: { turns } }: AgentParts,
  sessionId: string,
): Promise<readonly string[]> {
  const listed = await (turns.listHeaders?.() ?? turns.list?.());
  const ids = (listed ?? []).map((entry) => entry.sessionId);
  return ids.filter((id) => {
    const named = classifyCheckpointId(id);
    return named.kind === 'session' && named.sessionId === sessionId;
  });
}

/** What was said before the turn stays in the transcript, and so do the tasks that it names. */
function dropTurn(parts: AgentParts, sessionId: string, id: string): Promise<void> {
  const said = ({ messages, runInput }: Checkpoint) => messages.slice(runInput.start);
  return dropRun({ ...parts, store: parts.sessions.turns }, { id, sessionId, said });
}
