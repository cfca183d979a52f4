/** The conversations of one agent, as pages talk to them: what each request comes to. */
import {
  isSDKError,
  SDKError,
  type AgentRun,
  type ApprovalDecision,
  type Clock,
  type ErrorCode,
  type Principal,
} from '@lousho/contract';
import type { Agent, AgentSession, PendingRun } from '@lousho/core';
import { Answers, ownPart, restOf, type Answer, type Begin } from './answers.ts';
import type { ChatRequest, PageDecision } from './chat-request.ts';
import { eventStream } from './event-stream.ts';
import { refuse } from './request-body.ts';
import { errorTextOf, json, nothing } from './responses.ts';
import { uiMessages } from './transcript-ui.ts';
import type { UIChunk } from './ui-messages.ts';
import { watchAnswer } from './watched-answer.ts';

export interface ChatsOptions {
  readonly waitUntil: (work: Promise<void>) => void;
  /** Does not throw. */
  readonly onError: (error: unknown) => void;
  readonly clock: Clock;
}

/** Why a turn that was in progress a moment ago cannot be resumed: what it has come to meanwhile, the store says. */
const wentOnElsewhere: readonly ErrorCode[] = [
  // It is executing, in another process or by a recovery of this one.
  'LOUSHO_SESSION_BUSY',
  'LOUSHO_SESSION_AWAITING_APPROVAL',
  // It ended.
  'LOUSHO_INPUT_EMPTY',
];

/** Of the chats whose pages saw the middle of an answer that is made elsewhere. */
const REMEMBERED_CHATS = 1_000;

export class Chats {
  readonly #answers: Answers;
  /** Their pages come for the rest, however soon that is complete. The oldest first. */
  readonly #awaitedElsewhere = new Set<string>();

  constructor(
    readonly agent: Agent,
    readonly options: ChatsOptions,
  ) {
    this.#answers = new Answers(options.onError);
  }

  async take(posted: ChatRequest, principal: Principal | undefined): Promise<Response> {
    const answer =
      posted.said.length > 0 ? await this.#send(posted, principal) : await this.#decide(posted, principal);
    return this.#stream(ownPart(answer), posted.chatId);
  }

  async decideOne(
    chatId: string,
    decision: ApprovalDecision,
    principal: Principal | undefined,
  ): Promise<Response> {
    await this.#decideLast(chatId, { ...decision, ...decidedBy(principal) });
    return json({ decided: decision.id });
  }

  async load(chatId: string): Promise<Response> {
    const session = this.#session(chatId);
    const underWay = this.#underWay(chatId);
    if (underWay !== undefined) underWay.awaitedBy += 1;
    else if ((await statusOf(session)) === 'in-progress') this.#remember(chatId);
    const approvals = await this.agent.approvals.list({ sessionId: chatId });
    const messages = await session.messages({ includePending: true });
    const shown = uiMessages(messages, approvals);
    const last = shown.at(-1);
    // Whoever comes back to the answer gets all of it, in the place of what there is.
    const isOfAnswer = underWay !== undefined && last?.role === 'assistant';
    return json({
      messages: isOfAnswer ? [...shown.slice(0, -1), { ...last, id: underWay.message.id }] : shown,
    });
  }

  /** Of an answer whose process died, this goes on with it. */
  async reconnect(chatId: string, startIndex: number | undefined): Promise<Response> {
    const session = this.#session(chatId);
    const known = this.#answers.of(chatId);
    const isAwaited = known !== undefined && (known.awaitedBy > 0 || startIndex !== undefined);
    if (known !== undefined && known.awaitedBy > 0) known.awaitedBy -= 1;
    const before = await session.messages({ includePending: true });
    // One that is over is of use to nobody once the conversation was forgotten or went on elsewhere.
    const isWanted = isAwaited && uiMessages(before).at(-1)?.id === known.message.id;
    if (known !== undefined && (!known.log.isOver || isWanted))
      return this.#stream(restOf(known, startIndex), chatId);
    const isAwaitedElsewhere = this.#awaitedElsewhere.delete(chatId);
    const isOver = (await statusOf(session)) !== 'in-progress';
    if (isOver && (!isAwaitedElsewhere || before.length === 0)) return nothing();
    const begun = await this.#goOn(session, { before, isShown: false });
    return this.#stream(begun === undefined ? this.#watch(session) : restOf(begun), chatId);
  }

  async stop(chatId: string): Promise<Response> {
    const answer = this.#underWay(chatId);
    answer?.stop();
    return json({ stopped: answer !== undefined });
  }

  async #send(
    { chatId, userMessages, said, trigger }: ChatRequest,
    principal: Principal | undefined,
  ): Promise<Answer> {
    if (trigger === 'regenerate-message')
      refuse('trigger', trigger, "'submit-message': what an answer has done cannot be taken back");
    const session = this.#session(chatId);
    // Posted again, they are the same messages.
    const inputId = said.map(({ id }) => id).join(' ');
    const start = async (): Promise<Answer> => {
      const before = await session.messages({ includePending: true });
      const input = said.map(({ message }) => message);
      const run = session.stream(input, {
        inputId,
        ...(principal === undefined ? undefined : { principal }),
      });
      const counts = { shown: userMessages, said: said.length };
      return this.#begin(session, run, { userMessages: counts, before, isShown: false });
    };
    try {
      return await start();
    } catch (error) {
      if (!isSDKError(error, 'LOUSHO_SESSION_TURN_FAILED')) throw error;
      // A person who goes on after a failure wants it tried again: what it had done must not be forgotten.
      await session.resume();
      return start();
    }
  }

  /** A page says old decisions again: those that nothing waits for are left out. The last one goes on with the run. */
  async #decide(
    { chatId, lastId, decisions }: ChatRequest,
    principal: Principal | undefined,
  ): Promise<Answer> {
    const open = await this.agent.approvals.list({ sessionId: chatId });
    const given = decisions.filter(({ id }) => open.some((request) => request.id === id));
    // Of none that is open, the last one says why.
    const last = given.at(-1) ?? decisions.at(-1);
    if (last === undefined) return refuse('messages', 'nothing new', 'a message of the user, or a decision');
    const decide = ({ id, approved, reason }: PageDecision): ApprovalDecision => {
      const isQuestion = open.some((request) => request.id === id && request.kind === 'question');
      // A page has no other place for an answer.
      const words = isQuestion && approved ? { answer: reason } : { note: reason };
      return { id, approved, ...(reason === undefined ? undefined : words), ...decidedBy(principal) };
    };
    for (const decision of given.slice(0, -1)) await this.agent.approvals.resolve(decide(decision));
    return this.#decideLast(chatId, decide(last), { messageId: lastId });
  }

  async #decideLast(
    chatId: string,
    decision: ApprovalDecision,
    about: Pick<Begin, 'messageId'> = {},
  ): Promise<Answer> {
    const session = this.#session(chatId);
    // The id of an approval begins with that of its chat. One of another chat is, to this one, none that ever was.
    if (!decision.id.startsWith(`${chatId}.`))
      throw new SDKError('LOUSHO_APPROVAL_NOT_FOUND', { approvalId: decision.id });
    const before = await session.messages({ includePending: true });
    const run = this.agent.approvals.streamResolve(decision);
    return this.#begin(session, run, { ...about, before, isShown: true });
  }

  #stream(chunks: AsyncIterable<UIChunk>, chatId: string): Response {
    return eventStream(chunks, {
      encode: (chunk) => `data: ${JSON.stringify(chunk)}`,
      headers: { 'x-vercel-ai-ui-message-stream': 'v1', 'x-workflow-run-id': chatId },
      end: 'data: [DONE]',
      clock: this.options.clock,
    });
  }

  async #begin(session: AgentSession, run: AgentRun, about: Omit<Begin, 'committed'>): Promise<Answer> {
    const committed = (): ReturnType<AgentSession['messages']> => session.messages();
    const answer = await this.#answers.begin(session.id, run, { ...about, committed });
    this.options.waitUntil(answer.done);
    return answer;
  }

  /** `undefined`: the turn went on elsewhere. */
  async #goOn(session: AgentSession, about: Omit<Begin, 'committed'>): Promise<Answer | undefined> {
    try {
      return await this.#begin(session, session.streamResume(), about);
    } catch (error) {
      if (error instanceof SDKError && wentOnElsewhere.includes(error.code)) return undefined;
      throw error;
    }
  }

  async *#watch(session: AgentSession): AsyncGenerator<UIChunk, void, undefined> {
    const { clock, onError } = this.options;
    const messages = (): ReturnType<AgentSession['messages']> => session.messages({ includePending: true });
    const chat = {
      messages,
      status: () => statusOf(session),
      approvals: () => this.agent.approvals.list({ sessionId: session.id }),
      takeOver: async () => this.#goOn(session, { before: await messages(), isShown: true }),
    };
    try {
      yield* watchAnswer(chat, clock);
    } catch (error) {
      onError(error);
      yield { type: 'error', errorText: errorTextOf(error) };
    }
  }

  #remember(chatId: string): void {
    this.#awaitedElsewhere.add(chatId);
    const [oldest = ''] = this.#awaitedElsewhere;
    if (this.#awaitedElsewhere.size > REMEMBERED_CHATS) this.#awaitedElsewhere.delete(oldest);
  }

  #underWay(chatId: string): Answer | undefined {
    const answer = this.#answers.of(chatId);
    return answer?.log.isOver === false ? answer : undefined;
  }

  #session(id: string): AgentSession {
    return this.agent.session({ id });
  }
}

/** Of the unfinished turn. One that recovery gave up on is no page's to start: a page that is open would do so for ever. */
async function statusOf(session: AgentSession): Promise<PendingRun['status'] | undefined> {
  const pending = await session.pending();
  const isParked = pending?.status === 'in-progress' && pending.parked === true;
  return isParked ? undefined : pending?.status;
}

function decidedBy(principal: Principal | undefined): { readonly by?: string } {
  return principal === undefined ? {} : { by: principal.id };
}
