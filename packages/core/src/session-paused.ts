/** A session whose turn waits for a person takes nothing else, whichever door it comes through. */
import { isSessionId, turnCheckpointId } from '@lousho/contract';
import { awaitingApproval, loadCheckpoint } from '@lousho/executor/wiring';
import type { SessionParts } from './session-parts.ts';
import { loadTranscript } from './transcripts.ts';

/** @throws SessionAwaitingApprovalError when a session of this id waits: a plain run beside it would be another conversation */
export async function refusePausedTurn(sessions: SessionParts, sessionId: string): Promise<void> {
  if (!isSessionId(sessionId)) return;
  const { turn } = await loadTranscript(sessions.transcripts, sessionId);
  const stored = await loadCheckpoint(sessions.turns, turnCheckpointId(sessionId, turn));
  if (stored?.status === 'awaiting-approval') throw awaitingApproval(sessionId, stored);
}
