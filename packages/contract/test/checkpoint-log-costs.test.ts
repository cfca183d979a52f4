/** What an event costs, and what a damaged log is: an error, never another state. */
import { describe, expect, it } from 'vitest';
import {
  addDelegated,
  addModelCall,
  appendFrozen,
  deepFreeze,
  emptyUsage,
  foldEvents,
  historyOf,
  nextEvent,
  parseCheckpoint,
  type Checkpoint,
  type CheckpointHistoryEntry,
  type LogEvent,
  type Message,
  type ModelUsage,
} from '../src/index.ts';
import {
  aCheckpoint,
  aPausedCheckpoint,
  anApproval,
  modelCalls,
  modelSays,
  reloaded,
  resultFor,
  stored,
  toolMessage,
  userSays,
} from './support/checkpoints.ts';

const bytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));
const total = (values: readonly unknown[]): number =>
  values.reduce<number>((sum, value) => sum + bytes(value), 0);
const spent: ModelUsage = {
  inputTokens: 1_000,
  outputTokens: 200,
  totalTokens: 1_200,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  modelCalls: 1,
};

/** The saves of a run that asks for one tool a step. */
function stepsOf(count: number): readonly Checkpoint[] {
  const saves: Checkpoint[] = [];
  let checkpoint = aCheckpoint({ messages: [userSays('go')], runInput: { start: 0, count: 1 } });
  const save = (over: Partial<Checkpoint>, ...added: readonly Message[]): void => {
    const messages = appendFrozen(checkpoint.messages, added);
    checkpoint = deepFreeze({ ...checkpoint, ...over, messages } as typeof checkpoint);
    saves.push(checkpoint);
  };
  for (let step = 1; step <= count; step += 1) {
    const usage = addModelCall(checkpoint.usage, 'model', spent);
    save({ stepIndex: step, usage }, modelCalls(`call_${step}`));
    save({}, toolMessage(resultFor(`call_${step}`, { text: 'r'.repeat(100) })));
  }
  return saves;
}

function eventsOf(
  saves: readonly Checkpoint[],
  known = (before: Checkpoint): Checkpoint => before,
): LogEvent[] {
  return saves.map((checkpoint, index) => {
    const before = saves[index - 1];
    return stored(nextEvent(before === undefined ? undefined : known(before), checkpoint));
  });
}

describe('the cost of a save', () => {
  it('is what is new and a header of at most 80 bytes, however long the transcript is', () => {
    const saves = stepsOf(500);
    const events = eventsOf(saves);
    for (const [index, event] of events.entries()) {
      if (index === 0) continue;
      expect(bytes(event) - bytes(saves[index]!.messages.at(-1))).toBeLessThan(80);
    }
  });

  it('is the same for a process that loaded the state and shares no object with the one before', () => {
    const saves = stepsOf(20);
    expect(eventsOf(saves, reloaded)).toEqual(eventsOf(saves));
  });

  it('grows with the conversation, not with its square', () => {
    const short = total(eventsOf(stepsOf(100)));
    const long = total(eventsOf(stepsOf(1_000)));
    expect(long / short).toBeLessThan(11);
  });

  it('stores each of many parallel results once, though they settle early and are placed later', () => {
    const text = 'x'.repeat(200);
    const costOf = (count: number): number => {
      const ids = Array.from({ length: count }, (_none, index) => `call_${index}`);
      const asked = aCheckpoint({ stepIndex: 1, messages: [userSays('go'), modelCalls(...ids)] });
      const saves: Checkpoint[] = [asked];
      // All but the first settle, in reverse order; then the first does, and all take their places at once.
      for (const id of ids.slice(1).reverse()) {
        const { settledResults } = saves.at(-1)!;
        const settled = appendFrozen(settledResults, [resultFor(id, text)]);
        saves.push(deepFreeze({ ...asked, settledResults: settled }));
      }
      const results = new Map(saves.at(-1)!.settledResults.map((result) => [result.toolCallId, result]));
      const placed = ids.map((id) => toolMessage(results.get(id) ?? resultFor(id, text)));
      saves.push(deepFreeze({ ...asked, messages: appendFrozen<Message>(asked.messages, placed) }));
      const events = eventsOf(saves);
      expect(foldEvents(events)).toEqual(saves.at(-1));
      expect(JSON.stringify(events).split(text)).toHaveLength(count + 1);
      return total(events);
    };
    expect(costOf(200) / costOf(20)).toBeLessThan(11);
  });

  it('is one call and its result when a person approved with other arguments', () => {
    const waiting = aPausedCheckpoint([anApproval('a.apr-0-1-0')], {
      messages: deepFreeze([...stepsOf(200).at(-1)!.messages, modelCalls('pay')]),
    });
    const changed = { role: 'assistant', content: [{ ...modelCalls('pay').content[0], args: { cents: 5 } }] };
    const messages = [...waiting.messages.slice(0, -1), changed as Message, toolMessage(resultFor('pay'))];
    const event = nextEvent(waiting, aCheckpoint({ messages }));
    expect(event.k).toBe(401);
    expect(event.m).toEqual([changed, toolMessage(resultFor('pay'))]);
  });

  it('says what a paused run waits for once: the ids follow from the approvals', () => {
    const approvals = [anApproval('a.apr-0-1-0'), anApproval('a.apr-0-1-1')];
    expect(nextEvent(undefined, aPausedCheckpoint(approvals)).v).toEqual({ approvals });
    const odd = aPausedCheckpoint(approvals, { approvalId: 'old', approvalIds: ['old'] });
    expect(nextEvent(undefined, odd).v).toEqual({ approvals, approvalId: 'old', approvalIds: ['old'] });
  });

  it('is a few numbers for usage, with costs, estimates, several models and sub-agents', () => {
    const priced = addModelCall(emptyUsage, 'large', { ...spent, costUsd: 0.25 });
    const guessed = addModelCall(priced, 'small', { ...spent, estimated: true });
    const usages = [priced, guessed, addDelegated(guessed, priced), addDelegated(priced, priced)];
    for (const usage of usages)
      expect(nextEvent(undefined, aCheckpoint({ usage })).u).not.toHaveProperty('whole');
  });

  it('says nothing about what did not change', () => {
    const checkpoint = aCheckpoint({
      messages: [userSays('go')],
      heldInput: [userSays('later')],
      inputIds: ['i1'],
      settledResults: [resultFor('c')],
      businessState: { cart: [1, 2] },
      metadata: { tenant: 't' },
    });
    expect(nextEvent(checkpoint, reloaded(checkpoint))).toEqual({
      t: 1714564800000,
      s: 0,
      n: 1,
      u: [[], []],
    });
  });
});

describe('a shared prefix', () => {
  const session = appendFrozen<Message>(deepFreeze<Message[]>([]), [userSays('hi'), modelSays('hello')]);
  const turn = aCheckpoint({ messages: appendFrozen<Message>(session, [userSays('and now?')]) });
  const messagesOf = (of: string): readonly Message[] | undefined => (of === 'chat' ? session : undefined);

  it('is referred to, not copied', () => {
    const event = stored(nextEvent(undefined, turn, { of: 'chat', messages: session }));
    expect(event.b).toEqual({ of: 'chat', n: 2 });
    expect(event.m).toEqual([userSays('and now?')]);
    expect(foldEvents([event], messagesOf)).toEqual(stored(turn));
    expect(historyOf([event], 1, asCheckpoint, messagesOf)[0]?.checkpoint).toEqual(stored(turn));
  });

  it('still is the beginning after the other log went on', () => {
    const event = stored(nextEvent(undefined, turn, { of: 'chat', messages: session }));
    const longer = appendFrozen<Message>(session, [userSays('other')]);
    expect(foldEvents([event], () => longer)).toEqual(stored(turn));
  });

  it('is known by its objects, too: a list that was changed behind it begins with the same', () => {
    const changed = aCheckpoint({ messages: deepFreeze([...session, userSays('something else')]) });
    const event = stored(nextEvent(undefined, changed, { of: 'chat', messages: session }));
    expect(event.b).toEqual({ of: 'chat', n: 2 });
    expect(foldEvents([event], messagesOf)).toEqual(stored(changed));
  });

  it('is copied when the checkpoint does not stand on it', () => {
    const unrelated = reloaded(turn);
    const event = nextEvent(undefined, unrelated, { of: 'chat', messages: session });
    expect(event.b).toBe(1);
    expect(event.m).toHaveLength(3);
    expect(nextEvent(undefined, turn, { of: 'chat', messages: [] }).b).toBe(1);
  });

  it('that is gone or too short is an error', () => {
    const event = stored(nextEvent(undefined, turn, { of: 'chat', messages: session }));
    expect(() => foldEvents([event])).toThrow('The log stands on 2 messages of "chat", which are gone.');
    expect(() => foldEvents([event], () => session.slice(1))).toThrow('which are gone');
  });
});

describe('the history', () => {
  it('shares messages between its entries', () => {
    const history = historyOf(eventsOf(stepsOf(3)), Infinity, asCheckpoint);
    expect(history).toHaveLength(6);
    for (const [newer, older] of pairs(history))
      for (const [index, message] of older.checkpoint.messages.entries())
        expect(newer.checkpoint.messages[index]).toBe(message);
  });

  it('reads on over a log that was begun anew in the middle', () => {
    const saves = stepsOf(2);
    const events = saves.map((checkpoint) => stored(nextEvent(undefined, checkpoint)));
    expect(historyOf(events, 3, asCheckpoint).map((entry) => entry.step)).toEqual([2, 2, 1]);
  });
});

describe('a damaged log', () => {
  const [base, ...later] = eventsOf(stepsOf(4)) as [LogEvent, ...LogEvent[]];

  it.each(later.slice(0, -1).map((_event, index) => index))('that lost its event %i is an error', (lost) => {
    expect(() => foldEvents([base, ...later.toSpliced(lost, 1)])).toThrow('messages where');
  });

  it('that lost its base is an error, never taken for a record of old', () => {
    expect(() => foldEvents(later)).toThrow('The log does not begin with a base.');
    const { b: _base, f: _facts, m: _messages, ...rest } = base;
    expect(() => foldEvents([{ ...rest, n: 0 }])).toThrow('The log does not begin with a base.');
  });

  it('that keeps messages which it does not have is an error', () => {
    const event = { ...later[0]!, k: 7, n: 8 };
    expect(() => foldEvents([base, event])).toThrow('The log keeps 7 of 2 messages.');
  });

  it('that places a result which it does not hold is an error', () => {
    const event: LogEvent = { ...later[0]!, m: ['call_1'] };
    expect(() => foldEvents([base, event])).toThrow(
      'The log places a result of "call_1" that it does not hold.',
    );
  });
});

function asCheckpoint(state: unknown): Checkpoint {
  return parseCheckpoint(state, 'a');
}

function pairs(
  history: readonly CheckpointHistoryEntry[],
): (readonly [CheckpointHistoryEntry, CheckpointHistoryEntry])[] {
  return history.slice(1).map((older, index) => [history[index]!, older]);
}
