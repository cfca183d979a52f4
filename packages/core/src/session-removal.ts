/** Dropping the unfinished turn of a session, or the whole session. Nobody executes the turn meanwhile. */
import { classifyCheckpointId, isSDKError, turnCheckpointId, type Checkpoint } from '@lousho/contract';
import {
  awaitingApproval,
  exclusively,
  isOver,
  loadCheckpoint,
  openChildIds,
  taskRecordsIn,
} from '@lousho/executor/wiring';
import type { AgentParts } from './agent-config.ts';
import { SessionTurn } from './session-turn.ts';
import { loadTranscript } from './transcripts.ts';

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
    const stored = await storedTurn(parts, checkpointId);
    if (stored === null) return false;
    if (stored !== 'damaged' && isOver(stored)) {
      // It is over: nothing of it is unfinished, it only has to get into the transcript.
      await conversation.settle(stored, lease);
      return false;
    }
    await drop(parts, sessionId, checkpointId);
    return true;
  });
}

/** @throws LOUSHO_SESSION_BUSY while a turn runs, SessionAwaitingApprovalError while one waits for a person; then nothing is gone */
export async function clearSession(parts: AgentParts, sessionId: string): Promise<void> {
  for (;;) {
    const ids = await turnIds(parts, sessionId);
    // 1. The unfinished turn. Crash behind it: the conversation is as it was before that.
    for (const id of ids) await discardUnlessPaused(parts, sessionId, id);
    // 2. The transcript, while nobody has a turn of it that may have begun since.
    const isCleared = await whileNobodyExecutes(parts, ids, async () => {
      if (!sameIds(await turnIds(parts, sessionId), ids)) return false;
      for (const id of ids) if ((await storedTurn(parts, id)) !== null) return false;
      // What was said in tasks goes before what names it: nothing of it is left that nobody knows of.
      await forgetTasks(parts, await readable(loadTranscript(parts.sessions.transcripts, sessionId)));
      await parts.sessions.transcripts.delete(sessionId);
      return true;
    });
    if (isCleared) return;
  }
}

async function discardUnlessPaused(parts: AgentParts, sessionId: string, id: string): Promise<void> {
  await whileNobodyExecutes(parts, [id], async () => {
    const stored = await storedTurn(parts, id);
    if (stored !== null && stored !== 'damaged' && stored.status === 'awaiting-approval')
      throw awaitingApproval(sessionId, stored);
    await drop(parts, sessionId, id);
  });
}

/** Of several turns one after the other: a damaged transcript says nothing about which one is next. */
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

function sameIds(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((id) => others.includes(id));
}

async function forgetTasks(
  { taskRecords }: AgentParts,
  said: Pick<Checkpoint, 'messages'> | undefined,
): Promise<void> {
  for (const id of taskRecordsIn(said?.messages ?? [])) await taskRecords?.delete(id);
}

/** `undefined` when it is damaged: then nobody knows what it named. */
async function readable<Value>(loading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await loading;
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT')) return undefined;
    throw error;
  }
}

/** Its one turn; of a transcript that cannot be read any that the store lists. */
async function turnIds(parts: AgentParts, sessionId: string): Promise<readonly string[]> {
  const { transcripts, turns } = parts.sessions;
  try {
    const { turn } = await loadTranscript(transcripts, sessionId);
    return [turnCheckpointId(sessionId, turn)];
  } catch (error) {
    if (!isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT')) throw error;
    const listed = await (turns.listHeaders?.() ?? turns.list?.());
    const ids = (listed ?? []).map((entry) => entry.sessionId);
    return ids.filter((id) => {
      const named = classifyCheckpointId(id);
      return named.kind === 'session' && named.sessionId === sessionId;
    });
  }
}

async function storedTurn({ sessions }: AgentParts, id: string): Promise<Checkpoint | 'damaged' | null> {
  try {
    return await loadCheckpoint(sessions.turns, id);
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT')) return 'damaged';
    throw error;
  }
}

async function drop(parts: AgentParts, sessionId: string, id: string): Promise<void> {
  const { sessions, approvals } = parts;
  // 1. Its sub-agents, innermost first. Crash in between: the turn is still there, and still names the others.
  for (const childId of await childrenOf(parts, id)) await sessions.turns.delete(childId);
  const stored = await storedTurn(parts, id);
  if (stored !== null && stored !== 'damaged')
    await forgetTasks(parts, { messages: stored.messages.slice(stored.runInput.start) });
  // 2. The turn. Crash behind it: its approvals are orphans, which nobody can decide and no list shows.
  await sessions.turns.delete(id);
  // 3. Its approvals.
  for (const record of (await approvals?.list({ sessionId })) ?? [])
    if (record.checkpointId === id) await approvals?.delete(record.id);
}

/** Sub-agents that its open calls had begun, those of their own in front of them. */
async function childrenOf(parts: AgentParts, id: string): Promise<readonly string[]> {
  const stored = await storedTurn(parts, id);
  if (stored === null || stored === 'damaged') return [];
  const ids: string[] = [];
  for (const childId of openChildIds(id, stored)) ids.push(...(await childrenOf(parts, childId)), childId);
  return ids;
}
