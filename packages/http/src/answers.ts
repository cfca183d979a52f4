/** The answers that are being made in this process, one a chat, and the last ones that were: for pages that come back to them. */
import type { AgentEvent, AgentRun, ExecutionResult, Message } from '@lousho/contract';
import { AnswerChunks, chunksOf, endOf } from './answer-chunks.ts';
import { begunRun } from './begun-run.ts';
import { ReplayLog } from './replay-log.ts';
import { errorTextOf } from './responses.ts';
import { answerId, lastAnswerIn } from './transcript-ui.ts';
import type { UIChunk, UIMessage } from './ui-messages.ts';

/** Of one chat. */
export interface Answer {
  /** What there was of it when it began here. */
  readonly message: UIMessage;
  readonly log: ReplayLog<UIChunk>;
  /** Where the part of the message begins that the page has not: behind the first chunk, or behind all that was there. */
  readonly ownFrom: number;
  /** Resolves when it is over. Never rejects. */
  readonly done: Promise<void>;
  stop(): void;
  /** Pages that were shown the conversation while this was under way: they come for the rest, however soon that is complete. */
  awaitedBy: number;
}

/** What the run goes on with. */
export interface Begin {
  /** Of the message as the page that asks knows it. Default: by the number of user messages. */
  readonly messageId?: string | undefined;
  /** What the page that asks has, and how many of them are new. */
  readonly userMessages?: { readonly shown: number; readonly said: number };
  /** The conversation with its unfinished turn, as it was before the run. */
  readonly before: readonly Message[];
  /** The conversation as it is stored now. */
  readonly committed: () => Promise<readonly Message[]>;
  /** The page that asks has what there is of the message. */
  readonly isShown: boolean;
}

/** What the page that asked for it gets. */
export async function* ownPart({ log, ownFrom }: Answer): AsyncGenerator<UIChunk, void, undefined> {
  for await (const first of log.read()) {
    yield first;
    break;
  }
  yield* log.read(ownFrom);
}

/** What a page gets that has had so many chunks of its own part, or has lost them. */
export function restOf({ log, ownFrom }: Answer, startIndex = 0): AsyncIterable<UIChunk> {
  return log.read(startIndex === 0 ? 0 : ownFrom + startIndex - 1);
}

/** Kept for pages that ask for the rest of an answer that has ended meanwhile. */
const KEPT_ANSWERS = 100;

export class Answers {
  readonly #answers = new Map<string, Answer>();
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  of(chatId: string): Answer | undefined {
    return this.#answers.get(chatId);
  }

  /** Resolves when the run has begun, and is not stopped by anybody's leaving. @throws what the run rejects with before that */
  async begin(chatId: string, run: AgentRun, about: Begin): Promise<Answer> {
    const { first, others } = await begunRun(run);
    const message = await messageOf(about, first);
    const log = new ReplayLog<UIChunk>();
    log.add({ type: 'start', messageId: message.id }, ...chunksOf(message));
    const ownFrom = about.isShown ? log.length : 1;
    const chunks = new AnswerChunks(first?.runId ?? chatId, message.parts);
    const done = this.#follow(log, chunks, others, run.result);
    const answer = { message, log, ownFrom, done, stop: () => run.abort(), awaitedBy: 0 };
    this.#keep(chatId, answer);
    return answer;
  }

  async #follow(
    log: ReplayLog<UIChunk>,
    chunks: AnswerChunks,
    events: AsyncIterator<AgentEvent, void>,
    result: Promise<ExecutionResult>,
  ): Promise<void> {
    try {
      for (let next = await events.next(); next.done !== true; next = await events.next())
        log.add(...chunks.of(next.value));
      log.add(endOf(await result));
    } catch (error) {
      log.add({ type: 'error', errorText: errorTextOf(error) });
      this.#onError(error);
    } finally {
      log.end();
    }
  }

  #keep(chatId: string, answer: Answer): void {
    this.#answers.delete(chatId);
    this.#answers.set(chatId, answer);
    for (const [id, { log }] of this.#answers) {
      if (this.#answers.size <= KEPT_ANSWERS) return;
      if (log.isOver) this.#answers.delete(id);
    }
  }
}

/** The message that the run writes, with what there is of it. */
async function messageOf(
  { messageId, userMessages = { shown: 0, said: 0 }, before, committed }: Begin,
  begun: AgentEvent | undefined,
): Promise<UIMessage> {
  const isNew = begun?.type === 'run.start' && !begun.resumed;
  // Nothing was left to execute: it only says what the turn came to.
  const messages = begun === undefined ? await committed() : before;
  const stored = messages.filter(({ role }) => role === 'user').length + (isNew ? userMessages.said : 0);
  // What failed before anything was stored stays on the page: no id of this page comes twice.
  const id = messageId ?? answerId(Math.max(userMessages.shown, stored));
  return { id, role: 'assistant', parts: isNew ? [] : lastAnswerIn(messages).parts };
}
