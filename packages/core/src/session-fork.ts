/** Branching off from a conversation: a session of its own that begins with the transcript up to a step. */
import {
  SDKError,
  assertSessionId,
  deepFreeze,
  turnCheckpointId,
  type Clock,
  type SessionRecord,
} from '@lousho/contract';
import { stepsOf } from './session-history.ts';
import type { SessionParts } from './session-parts.ts';
import { isCleared, loadTranscript, newTranscript } from './transcripts.ts';

/** @throws LOUSHO_CHECKPOINT_NOT_FOUND naming the steps that there are */
export function transcriptUpTo(record: SessionRecord, fromStep: number): SessionRecord {
  if (fromStep === 0) return { ...newTranscript(record.id), usage: record.usage };
  const steps = stepsOf(record.messages);
  const step = steps.find((candidate) => candidate.step === fromStep);
  if (step === undefined) {
    throw new SDKError('LOUSHO_CHECKPOINT_NOT_FOUND', {
      sessionId: record.id,
      fromStep,
      keptSteps: steps.map((candidate) => candidate.step),
    });
  }
  const { lastTurn: _last, ...kept } = record;
  return {
    ...kept,
    messages: record.messages.slice(0, step.messageCount),
    // Which input had which id is not known any more, and what is cut off may be sent again.
    inputIds: [],
    turn: step.turn + 1,
  };
}

/** The id that it got: `wanted`, or the first free one of `<id>-fork-<n>`. @throws LOUSHO_SESSION_EXISTS */
export async function saveFork(
  parts: SessionParts,
  kept: SessionRecord,
  wanted: string | undefined,
  clock: Clock,
): Promise<string> {
  for (let n = 1; ; n += 1) {
    const id = wanted ?? `${kept.id}-fork-${n}`;
    // Before anything is stored: the default may be too long.
    assertSessionId(id);
    if (await saveAs(parts, { ...kept, id }, clock)) return id;
    if (wanted !== undefined) throw new SDKError('LOUSHO_SESSION_EXISTS', { sessionId: wanted });
  }
}

/** `false` when the id has a conversation, or a turn that the new one would take for its own. */
async function saveAs(
  { transcripts, turns }: SessionParts,
  fork: SessionRecord,
  clock: Clock,
): Promise<boolean> {
  const there = await loadTranscript(transcripts, fork.id);
  if (there.revision > 0 && !isCleared(there)) return false;
  // Never the number of a turn that the id had before it was cleared.
  const record = { ...fork, turn: Math.max(fork.turn, there.turn), revision: there.revision + 1 };
  if ((await turns.load(turnCheckpointId(record.id, record.turn))) !== null) return false;
  const savedAt = new Date(clock.wallMs()).toISOString();
  return transcripts.saveIfRevision(deepFreeze({ ...record, savedAt }), there.revision);
}
