/** One turn of a session: what its run goes on from, and how what it came to gets into the transcript. */
import {
  SDKError,
  addRun,
  appendFrozen,
  deepFreeze,
  turnCheckpointId,
  type Checkpoint,
  type Clock,
  type Message,
  type SessionRecord,
  type TurnSummary,
} from '@lousho/contract';
import {
  isInstructions,
  knownSpend,
  shownTasks,
  turnSpend,
  type Conversation,
  type ConversationState,
  type HeldLease,
} from '@lousho/executor/wiring';
import type { SessionParts } from './session-parts.ts';
import { loadTranscript } from './transcripts.ts';

/** How often a commit that others overtook is tried again. Each time somebody else has committed a turn. */
const MAX_LATE_COMMITS = 10;

export class SessionTurn implements Conversation {
  readonly checkpointId: string;
  #record: SessionRecord | undefined;

  /** @param turn number of turns committed before it */
  constructor(
    readonly parts: SessionParts,
    readonly sessionId: string,
    readonly turn: number,
    readonly clock: Clock,
  ) {
    this.checkpointId = turnCheckpointId(sessionId, turn);
  }

  async open(): Promise<ConversationState | undefined> {
    const record = await loadTranscript(this.parts.transcripts, this.sessionId);
    if (record.turn !== this.turn) return undefined;
    this.#record = record;
    return record;
  }

  async said(): Promise<readonly Message[]> {
    return (await loadTranscript(this.parts.transcripts, this.sessionId)).messages;
  }

  /**
   * Only after `open()`.
   * @throws LOUSHO_SESSION_BUSY when the turn is somebody else's now, who records it; and, with `executed`, when another process has
   * written the transcript: what the turn did is then in it, behind theirs
   */
  async settle(checkpoint: Checkpoint, lease: HeldLease | undefined): Promise<void> {
    const { transcripts, turns, isEphemeral, sweptUpTo } = this.parts;
    if (checkpoint.status === 'awaiting-approval') {
      // Its decisions run on a copy of this memory.
      if (isEphemeral) await turns.save(this.checkpointId, checkpoint);
      return;
    }
    const record = this.#opened();
    // 1. The transcript. Crash before it: the turn is stored as over, and whoever opens the session next records it.
    const isCommitted = await transcripts.saveIfRevision(this.#with(record, checkpoint), record.revision);
    // Whoever took the turn over while this process stood still has recorded it, and may have gone on since.
    if (!isCommitted) await lease?.renewNow();
    const isLate = !isCommitted && (await this.#commitLate(record, checkpoint));
    // 2. The turn's own checkpoint. Crash before it: a leftover under a number that never comes again; the next turn removes it.
    await turns.delete(this.checkpointId);
    sweptUpTo.note(this.sessionId, this.turn + 1);
    if (isLate) throw new SDKError('LOUSHO_SESSION_BUSY', { sessionId: this.sessionId, executed: true });
  }

  #opened(): SessionRecord {
    if (this.#record === undefined) throw new Error('Invariant: a turn is settled that was not opened');
    return this.#record;
  }

  #with(record: SessionRecord, checkpoint: Checkpoint): SessionRecord {
    const { inputIds, businessState } = checkpoint;
    return this.#next(record, checkpoint, {
      messages: appendFrozen(checkpoint.messages, checkpoint.heldInput),
      inputIds,
      lastTurn: summaryOf(checkpoint),
      ...(businessState === undefined ? undefined : { businessState }),
    });
  }

  /**
   * Somebody wrote the transcript without this turn's lease: a store whose leases are best effort. Effects must not be forgotten, so what
   * this turn did goes behind what they did. `false`: it was this very turn that they recorded.
   */
  async #commitLate(before: SessionRecord, checkpoint: Checkpoint): Promise<boolean> {
    const { transcripts } = this.parts;
    const mine = messagesOfTurn(before, checkpoint);
    const last = summaryOf(checkpoint);
    const inputAt =
      last.runInput.start - (checkpoint.messages.length + checkpoint.heldInput.length - mine.length);
    for (let attempt = 0; attempt < MAX_LATE_COMMITS; attempt += 1) {
      const record = await loadTranscript(transcripts, this.sessionId);
      if (record.lastTurn?.runId === checkpoint.runId) return false;
      const start = record.messages.length + Math.max(0, inputAt);
      const next = this.#next(record, checkpoint, {
        messages: appendFrozen(record.messages, mine),
        inputIds: [...new Set([...record.inputIds, ...checkpoint.inputIds])],
        // A retry of its input finds what it came to.
        lastTurn: { ...last, runInput: { ...last.runInput, start } },
      });
      if (await transcripts.saveIfRevision(next, record.revision)) return true;
    }
    throw new SDKError('LOUSHO_SESSION_BUSY', { sessionId: this.sessionId, executed: true });
  }

  #next(
    record: SessionRecord,
    checkpoint: Checkpoint,
    changes: Pick<SessionRecord, 'messages' | 'inputIds'> & Partial<SessionRecord>,
  ): SessionRecord {
    return deepFreeze({
      ...record,
      ...changes,
      revision: record.revision + 1,
      turn: record.turn + 1,
      usage: addRun(record.usage, turnSpend(checkpoint)),
      savedAt: new Date(this.clock.wallMs()).toISOString(),
    });
  }
}

function summaryOf(checkpoint: Checkpoint): TurnSummary {
  const { runId, agentName, activeAgent, stepIndex, runInput, backgroundTasks } = checkpoint;
  const { finishReason = 'other' } = checkpoint as { readonly finishReason?: TurnSummary['finishReason'] };
  const limit = checkpoint.status === 'finished' ? checkpoint.limit : undefined;
  return {
    runId,
    agentName,
    stepIndex,
    runInput,
    usage: knownSpend(checkpoint),
    finishReason,
    ...(activeAgent === undefined ? undefined : { activeAgent }),
    ...(limit === undefined ? undefined : { limit }),
    ...(backgroundTasks === undefined ? undefined : { backgroundTasks: shownTasks(backgroundTasks) }),
  };
}

/** Everything that came behind what the turn began with: a turn that took input at its end has had several runs. */
function messagesOfTurn(before: SessionRecord, { messages, heldInput }: Checkpoint): readonly Message[] {
  const isOfBefore = (message: Message): boolean => message.role !== 'system' || !isInstructions(message);
  const count = before.messages.filter(isOfBefore).length;
  const instructions = messages.filter((message) => !isOfBefore(message)).length;
  return [...messages.slice(count + instructions), ...heldInput];
}
