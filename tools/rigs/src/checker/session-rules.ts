/** Conversations: what was said and answered stands in the transcript, once and in order, and nothing else of it is left. */
import { answeredCalls, textOf, type Message, type SessionRecord } from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';
import type { LineOf } from '../effect-log.ts';
import { groupBy, type Evidence, type Facts, type Indexed } from './evidence.ts';
import { documentedCodes } from './lease-rules.ts';

/** What a rig of sessions leaves behind: its runs are turns, which are gone when they are over. */
export interface SessionEvidence extends Evidence {
  /** By id, when everything was over. */
  readonly sessions: ReadonlyMap<string, SessionRecord>;
  /** Ids of checkpoints that were left then. */
  readonly leftovers: readonly string[];
  /** Sessions in which replies may have been dropped for a steer. */
  readonly steered: ReadonlySet<string>;
}
/** Yields a sentence for each violation. */
export type SessionRule = (facts: Facts, evidence: SessionEvidence) => Iterable<string>;

/** Each call has exactly one result, in call order. */
export function* transcriptsAreWhole(_: Facts, { sessions }: SessionEvidence): Iterable<string> {
  for (const [id, { messages }] of sessions)
    for (const problem of transcriptProblems(messages)) yield `${id}: ${problem}`;
}

/** Each input at most once, and each that was acknowledged, in the order in which that happened. */
export function* inputsStandOnceInOrder(facts: Facts, { sessions }: SessionEvidence): Iterable<string> {
  const said = groupBy(acknowledged(facts), ({ session }) => session);
  for (const [id, { messages }] of sessions) {
    const places = groupBy(messages.keys(), (index) => inputIn(messages[index]));
    for (const [input, found] of places)
      if (input !== undefined && found.length > 1) yield `${id} holds input ${input} ${found.length} times.`;
    const kept = (said.get(id) ?? []).filter((one) => !mayBeCleared(facts, one));
    for (const { inputId, op } of kept)
      if (!places.has(inputId)) yield `${id} lost input ${inputId}, which ${op} was acknowledged.`;
    for (const first of kept)
      for (const second of kept)
        if (first.endedAt < second.firstBeganAt && placeOf(places, first) > placeOf(places, second))
          yield `${id} holds ${second.inputId} before ${first.inputId}, which was acknowledged before that was said.`;
  }
}

function placeOf(places: ReadonlyMap<string | undefined, readonly number[]>, { inputId }: Said): number {
  return places.get(inputId)?.[0] ?? NaN;
}

/** Whoever said something was given the reply that stands behind it: of its own turn, or, said again, of a later one. */
export function* repliesAreThoseGiven(facts: Facts, { sessions }: SessionEvidence): Iterable<string> {
  for (const one of acknowledged(facts)) {
    const messages = sessions.get(one.session)?.messages ?? [];
    if (mayBeCleared(facts, one)) continue;
    const saidAt = messages.findIndex((message) => inputIn(message) === one.inputId);
    const repliedAt = messages.findIndex(
      (message) => message.role === 'assistant' && textOf(message) === one.text,
    );
    if (repliedAt < saidAt)
      yield `${one.session}: ${one.op} was given "${one.text}" for ${one.inputId}, which is not behind it.`;
    if (one.beganAt !== one.firstBeganAt) continue;
    const between = messages.slice(saidAt + 1, repliedAt).map(inputIn);
    for (const other of acknowledged(facts))
      if (other.session === one.session && between.includes(other.inputId) && other.runId !== one.runId)
        yield `${one.session}: ${one.op} was given "${one.text}" for ${one.inputId}; that is the reply to ${other.inputId}.`;
  }
}

/** A call that a person approved has run where its result says so, and one that was not to be repeated began once in all conversations. */
export function* resultsCameFromCalls(facts: Facts, { sessions }: SessionEvidence): Iterable<string> {
  const done = groupBy(facts.all('tool.done'), ({ callId }) => callId);
  for (const [id, { messages }] of sessions)
    for (const { call, result } of answeredCalls(messages))
      if (result.kind === undefined && !done.has(call.toolCallId))
        yield `${id} ${call.toolCallId} has a result, and the tool never ended.`;
}

/** Usage of a conversation is that of the responses in it. */
export function* usageIsThatOfTheTurns(_: Facts, { sessions, steered }: SessionEvidence): Iterable<string> {
  for (const [id, { messages, usage }] of sessions) {
    const responses = messages.filter(({ role }) => role === 'assistant').length;
    const isRight = steered.has(id) ? usage.modelCalls >= responses : usage.modelCalls === responses;
    if (!isRight) yield `${id} counts ${usage.modelCalls} model calls; ${responses} responses stand in it.`;
  }
}

/** Of turns that are over nothing is left but the transcript. */
export function* nothingElseIsLeft(_: Facts, { leftovers }: SessionEvidence): Iterable<string> {
  for (const id of leftovers) yield `${id} is left.`;
}

/** Whoever is refused gets one of a few codes. */
export function* refusalsAreDocumented(facts: Facts): Iterable<string> {
  const forks = new Set(facts.all('op.began').flatMap(({ op, action }) => (action === 'fork' ? [op] : [])));
  for (const { op, session, outcome } of facts.all('op.ended')) {
    if (outcome.type !== 'rejected' || documentedCodes.has(outcome.code ?? '')) continue;
    if (
      forks.has(op) &&
      ['LOUSHO_CHECKPOINT_NOT_FOUND', 'LOUSHO_SESSION_EXISTS'].includes(outcome.code ?? '')
    )
      continue;
    yield `${session}: ${op} got ${outcome.code ?? 'no code'}: ${outcome.message} ${outcome.cause ?? ''}`;
  }
}

/** An input that somebody was given a reply for. */
interface Said {
  readonly op: string;
  readonly session: string;
  readonly inputId: string;
  readonly text: string;
  readonly runId: string;
  /** Of this attempt, and of the first one. */
  readonly beganAt: number;
  readonly firstBeganAt: number;
  readonly endedAt: number;
}

const saidIn = new WeakMap<Facts, readonly Said[]>();

function acknowledged(facts: Facts): readonly Said[] {
  const known = saidIn.get(facts);
  if (known !== undefined) return known;
  const ends = new Map(facts.all('op.ended').map((line) => [line.op, line]));
  const firstBegan = new Map<string, number>();
  const all = facts.all('op.began').flatMap((began): Said[] => {
    const { op, session, action, inputId = '', index } = began;
    if (action !== 'say') return [];
    if (!firstBegan.has(inputId)) firstBegan.set(inputId, index);
    const end = ends.get(op);
    if (end?.outcome.type !== 'resolved' || end.outcome.finishReason === 'awaiting-approval') return [];
    const { text, runId } = end.outcome.told as { readonly text: string; readonly runId: string };
    const firstBeganAt = firstBegan.get(inputId) ?? index;
    return [{ op, session, inputId, text, runId, beganAt: index, firstBeganAt, endedAt: end.index }];
  });
  saidIn.set(facts, all);
  return all;
}

/** Somebody cleared the conversation after it was said for the first time, or may have. */
function mayBeCleared(facts: Facts, { session, firstBeganAt }: Said): boolean {
  return facts.all('op.began').some((began: Indexed<LineOf<'op.began'>>) => {
    if (began.action !== 'clear' || began.session !== session) return false;
    const end = facts.all('op.ended').find(({ op }) => op === began.op);
    if (end?.outcome.type === 'rejected' && end.outcome.code === 'LOUSHO_SESSION_BUSY') return false;
    return (end?.index ?? facts.goneAt(began.worker)) > firstBeganAt;
  });
}

function inputIn(message: Message | undefined): string | undefined {
  if (message?.role !== 'user') return undefined;
  return /^Input (.+)$/.exec(textOf(message))?.[1];
}
