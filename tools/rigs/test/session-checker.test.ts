/** The rules about conversations: silent when all went well, and each sees the fault that it is for. */
import { emptyUsage, type Message, type SessionRecord } from '@lousho/contract';
import { expect, it } from 'vitest';
import {
  describeViolations,
  findSessionViolations,
  sessionRuleNames,
  type SessionEvidence,
  type SessionRuleName,
} from '../src/checker.ts';
import type { LogLine, Outcome } from '../src/effect-log.ts';
import type { Action } from '../src/worker-process.ts';

/** Two inputs one after the other; the first came to a call and its reply. */
function goodTalk() {
  const call = { type: 'tool-call', toolCallId: 'c1-0', toolName: 'work', args: {} } as const;
  const result = { type: 'tool-result', toolCallId: 'c1-0', toolName: 'work', result: 'done' } as const;
  const messages: Message[] = [
    { role: 'user', content: 'Input a' },
    { role: 'assistant', content: [call] },
    { role: 'tool', content: [result] },
    { role: 'assistant', content: [{ type: 'text', text: 'A.' }] },
    { role: 'user', content: 'Input b' },
    { role: 'assistant', content: [{ type: 'text', text: 'B.' }] },
  ];
  const log: LogLine[] = [
    ...said('w1-1', 'a', 'A.', 'run-a', [
      {
        ...line('w1-1'),
        kind: 'tool.done',
        fence: 1,
        callId: 'c1-0',
        toolName: 'work',
        args: {},
        key: 'k',
        step: 1,
      },
    ]),
    ...said('w2-1', 'b', 'B.', 'run-b'),
  ];
  const leftovers: string[] = [];
  return { messages, log, leftovers, modelCalls: 3 };
}

type Talk = ReturnType<typeof goodTalk>;

function evidenceOf({ messages, log, leftovers, modelCalls }: Talk): SessionEvidence {
  const record: SessionRecord = {
    ...{ id: 'chat', revision: 2, turn: 2, messages, inputIds: [], savedAt: '2026-01-01T00:00:00.000Z' },
    usage: { ...emptyUsage, modelCalls },
  };
  const sessions = new Map([['chat', record]]);
  return { log, looks: [], finals: new Map(), leaseTtlMs: 600, sessions, leftovers, steered: new Set() };
}

function line(op: string, session = 'chat') {
  return { at: 1, worker: op.replace(/-.*/, ''), op, session };
}

function began(op: string, action: Action['type'], inputId?: string): LogLine {
  return { ...line(op), kind: 'op.began', action, ...(inputId === undefined ? undefined : { inputId }) };
}

function ended(op: string, outcome: Outcome): LogLine {
  return { ...line(op), kind: 'op.ended', outcome };
}

function said(op: string, inputId: string, text: string, runId: string, inside: readonly LogLine[] = []) {
  const outcome: Outcome = { type: 'resolved', finishReason: 'stop', told: { text, runId } };
  return [began(op, 'say', inputId), ...inside, ended(op, outcome)];
}

const cleared = [began('w3-1', 'clear'), ended('w3-1', { type: 'resolved', finishReason: 'cleared' })];

it('finds nothing in a talk where everything held', () => {
  expect(describeViolations(findSessionViolations(evidenceOf(goodTalk())))).toBe('');
});

it('finds nothing when what was said was cleared after that', () => {
  const talk = goodTalk();
  talk.messages.length = 0;
  talk.log.push(...cleared);
  expect(describeViolations(findSessionViolations(evidenceOf({ ...talk, modelCalls: 0 })))).toBe('');
});

type Fault = readonly [rule: SessionRuleName, what: string, plant: (talk: Talk) => unknown];

const faults: readonly Fault[] = [
  ['G1 G2 G6: transcripts are whole', 'a result is missing', ({ messages }) => messages.splice(2, 1)],
  [
    'G15 G18: inputs stand once, in order',
    'an input stands there twice',
    ({ messages }) => messages.push({ role: 'user', content: 'Input a' }),
  ],
  [
    'G15 G18: inputs stand once, in order',
    'a turn that was acknowledged is gone',
    ({ messages }) => messages.splice(4, 2),
  ],
  [
    'G15 G18: inputs stand once, in order',
    'a turn that was acknowledged after a clear is gone',
    ({ messages, log }) => {
      log.unshift(...cleared);
      messages.splice(4, 2);
    },
  ],
  [
    'G15 G18: inputs stand once, in order',
    'turns stand in another order',
    ({ messages }) => messages.unshift(...messages.splice(4, 2)),
  ],
  [
    'G15: replies are those given',
    'the reply is nowhere',
    ({ messages }) => (messages[5] = { role: 'assistant', content: [{ type: 'text', text: 'C.' }] }),
  ],
  [
    'G15: replies are those given',
    'it is the reply to somebody else',
    ({ log }) => Object.assign(log[2] ?? {}, said('w1-1', 'a', 'B.', 'run-a')[1]),
  ],
  [
    'G1: results came from calls',
    'the tool never ended',
    ({ log }) =>
      log.splice(
        log.findIndex(({ kind }) => kind === 'tool.done'),
        1,
      ),
  ],
  ['G23: usage is that of the turns', 'a call is missing', (talk) => (talk.modelCalls = 2)],
  ['nothing but the transcript is left', 'a turn is left', ({ leftovers }) => leftovers.push('chat.turn-1')],
  [
    'G27: refusals are documented',
    'somebody gets a code of nobody',
    ({ log }) =>
      log.push(began('w3-1', 'say', 'c'), ended('w3-1', { type: 'rejected', code: 'X', message: '' })),
  ],
];

it.each(faults)('%s: sees that %s', (rule, _what, plant) => {
  const talk = goodTalk();
  plant(talk);
  expect(findSessionViolations(evidenceOf(talk)).map((violation) => violation.rule)).toContain(rule);
});

it('plants a fault for each rule', () => {
  expect(new Set(faults.map(([rule]) => rule))).toEqual(new Set(sessionRuleNames));
});
