/** Stored data on its way in: every older shape is read, every damage is named, and nothing is ever taken for something else. */
import { readFileSync, readdirSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  SDKError,
  addDelegated,
  addModelCall,
  emptyUsage,
  isMessage,
  isSDKError,
  parseApprovalRecord,
  parseCheckpoint,
  parseSessionRecord,
  type ApprovalRecord,
  type Checkpoint,
  type JsonValue,
  type Message,
  type ModelUsage,
  type SessionRecord,
} from '../src/index.ts';
import { anyJson } from './support/arbitraries.ts';
import {
  aCheckpoint,
  aFinishedCheckpoint,
  aPausedCheckpoint,
  anApproval,
  modelCalls,
  resultFor,
  stored,
  toolMessage,
  userSays,
} from './support/checkpoints.ts';

const spent: ModelUsage = { ...withoutModels(), modelCalls: 1, totalTokens: 5, inputTokens: 5 };
const messages: readonly Message[] = [
  { role: 'system', content: 'be kind' },
  userSays('go'),
  {
    role: 'user',
    content: [
      { type: 'text', text: 'see' },
      { type: 'file', mediaType: 'image/png', data: { type: 'url', url: 'x' } },
    ],
  },
  {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: '', providerMetadata: { p: { signature: 's' } } },
      { type: 'file', mediaType: 'a/b', filename: 'f', data: { type: 'data', data: 'AA==' } },
      { type: 'file', mediaType: 'a/b', data: { type: 'reference', reference: { p: 'id' } } },
      { type: 'file', mediaType: 'a/b', data: { type: 'text', text: 't' } },
      { type: 'tool-call', toolCallId: 'w', toolName: 'web', args: null, providerExecuted: true },
      { type: 'tool-result', toolCallId: 'w', toolName: 'web', result: null },
      { type: 'custom', kind: 'p.item' },
      { type: 'tool-call', toolCallId: 'a', toolName: 'look', args: {}, invalidArgs: '{' },
    ],
  },
  toolMessage({ ...resultFor('a'), isError: true, kind: 'validation' }),
];
const running = aCheckpoint({
  messages,
  stepIndex: 1,
  usage: addDelegated(addModelCall(emptyUsage, 'm', spent), spent),
  businessState: null,
  runInput: { start: 1, count: 2 },
  heldInput: [userSays('later')],
  inputIds: ['i'],
  settledResults: [resultFor('b')],
  startedToolCallIds: ['b'],
  delegatedInFlight: [{ checkpointId: 'a.sub-0-0', usage: spent }],
  activeAgent: 'billing',
  fingerprint: { version: 1, hash: 'h', model: 'm', tools: { look: 'h' }, instructions: 'h' },
  runConfig: { ctx: { input: [], metadata: {} }, model: 'm' },
  principal: { id: 'u', roles: ['x'] },
  metadata: { tenant: 't' },
  forkedFrom: { sessionId: 'b', step: 2 },
  traceparent: '00',
  lastError: { name: 'Error', message: 'x', code: 'X', retryable: false, failedAt: 'now' },
  attempts: 1,
  startsWithoutProgress: 2,
  parkedAt: 'then',
});
const decision = {
  approved: true,
  source: 'person',
  by: 'ann',
  note: 'n',
  args: {},
  answer: 'y',
  decidedAt: 'd',
} as const;
const paused = aPausedCheckpoint([
  anApproval('x', { args: { a: 1 }, expiresAt: 'e', childId: 'c' }),
  anApproval('y', { kind: 'question', decision }),
]);
const finished = aFinishedCheckpoint({
  finishReason: 'limit',
  limit: { name: 'maxCostUsd', max: 1, used: 2 },
  messages: [modelCalls()],
});
const approval: ApprovalRecord = {
  id: 'a.apr-00000000-1-0',
  kind: 'tool',
  sessionId: 's',
  runId: 'r',
  agentName: 'agent',
  toolCallId: 'c',
  toolName: 'pay',
  args: { cents: 5 },
  question: { text: 'q', options: ['a'], allowFreeText: false },
  subagentPath: ['mailer'],
  principal: { id: 'u' },
  createdAt: 'now',
  expiresAt: 'later',
  checkpointId: 'a',
  argsHash: 'h',
  snapshot: { checkpoints: [{ checkpointId: 'a', checkpoint: running }], remainingToolCalls: [] },
};
const session: SessionRecord = {
  id: 's',
  revision: 3,
  turn: 2,
  messages,
  inputIds: ['i'],
  businessState: { cart: [] },
  usage: emptyUsage,
  savedAt: 'now',
};

const checkpoints: readonly (readonly [string, Checkpoint])[] = [
  ['running', running],
  ['paused', paused],
  ['finished', finished],
  ['fresh', aCheckpoint()],
];

describe('parseCheckpoint', () => {
  it.each(checkpoints)('gives a %s checkpoint back as it was stored', (_name, checkpoint) => {
    const record = stored(checkpoint);
    expect(parseCheckpoint(record, 'a')).toBe(record);
    expect(record).toEqual(checkpoint);
  });

  it('keeps fields that this release does not know, at every level', () => {
    const record = stored({ ...running, later: { a: [1] }, usage: { ...running.usage, audioTokens: 1 } });
    const before = JSON.stringify(record);
    expect(JSON.stringify(parseCheckpoint(record, 'a'))).toBe(before);
  });

  it('keeps __proto__ keys as keys', () => {
    const text = JSON.stringify(aCheckpoint({ metadata: { here: 1 } })).replace('"here"', '"__proto__"');
    expect(JSON.stringify(parseCheckpoint(JSON.parse(text), 'a'))).toBe(text);
  });

  it('takes a paused checkpoint of which every call is decided: a crash can leave one', () => {
    expect(() => parseCheckpoint({ ...paused, approvals: [], approvalIds: [] }, 'a')).not.toThrow();
  });

  it.each([2, 99, 1.5])('refuses version %s with a code of its own and leaves it alone', (version) => {
    const record = Object.freeze({ version, whatever: true });
    const refusal = errorOf(() => parseCheckpoint(record, 'a'));
    expect(refusal).toMatchObject({
      code: 'LOUSHO_STORE_VERSION_UNSUPPORTED',
      retryable: false,
      details: { found: version, supported: 1 },
    });
  });
});

describe('older checkpoints', () => {
  const files = readdirSync(new URL('./fixtures/version-0/', import.meta.url));
  const read = (file: string): unknown =>
    JSON.parse(readFileSync(new URL(`./fixtures/version-0/${file}`, import.meta.url), 'utf8'));
  const nothing = withoutModels();
  const counted = { ...nothing, inputTokens: 10, outputTokens: 5, totalTokens: 15 };
  const openCall = { messages: (read('only-messages.json') as Checkpoint).messages };
  /** What they are not, they are as all of them. */
  const usual = {
    ...{ version: 1, status: 'in-progress', runId: '0', agentName: 'agent', stepIndex: 1 },
    ...{
      usage: emptyUsage,
      runInput: { start: 0, count: 0 },
      heldInput: [],
      inputIds: [],
      settledResults: [],
    },
    ...{ startedToolCallIds: [], approvals: [], delegatedInFlight: [], savedAt: '1970-01-01T00:00:00.000Z' },
    ...openCall,
  };
  const begun = { messages: openCall.messages.slice(0, 1) };
  const wanted: { readonly [file: string]: object } = {
    'only-messages.json': { stepIndex: 0 },
    'no-status.json': {
      ...{ stepIndex: 2, agentName: 'support', sessionId: 'order-7', usage: { ...counted, byModel: {} } },
    },
    'three-token-counts.json': {
      usage: { ...nothing, inputTokens: 120, outputTokens: 30, totalTokens: 150, byModel: {} },
    },
    'two-token-counts.json': {
      usage: { ...nothing, inputTokens: 120, outputTokens: 30, totalTokens: 150, byModel: {} },
    },
    'prompt-tokens.json': {
      usage: {
        ...{ ...nothing, inputTokens: 7, outputTokens: 3, totalTokens: 10, byModel: {} },
        ...{ promptTokens: 7, completionTokens: 3 },
      },
    },
    'usage-by-model.json': {
      stepIndex: 2,
      usage: {
        ...{ ...nothing, inputTokens: 10, outputTokens: 2, totalTokens: 12, modelCalls: 2, costUsd: 0.5 },
        byModel: {
          big: {
            ...{ ...nothing, inputTokens: 10, outputTokens: 2, totalTokens: 12, modelCalls: 2, costUsd: 0.5 },
            calls: 2,
          },
        },
        delegated: { ...nothing, runs: 1, modelCalls: 1, inputTokens: 4, totalTokens: 4 },
      },
    },
    // Nobody could answer what is not in it: the next resume asks again.
    'waiting.json': { usage: { ...counted, byModel: {} } },
    'failed.json': {
      usage: { ...counted, byModel: {} },
      lastError: { name: 'Error', message: 'overloaded', code: 'E', retryable: true, at: 'then' },
      attempts: 3,
    },
    // A count below 0, an error that is a text, the reason of a run that has not ended: they make no sense.
    'odd-attempts.json': {},
    'aborted.json': { finishReason: 'aborted' },
    'finished.json': { ...begun, status: 'finished', finishReason: 'max-steps' },
    'finished-for-a-reason-that-is-no-more.json': { ...begun, status: 'finished', finishReason: 'other' },
  };

  it('have a fixture each', () => {
    expect(files.sort()).toEqual(Object.keys(wanted).sort());
  });

  it.each(Object.entries(wanted))('of the shape %s are read', (file, fields) => {
    const record = read(file);
    const before = JSON.stringify(record);
    const checkpoint = parseCheckpoint(record, 'a');
    expect(checkpoint).toStrictEqual({ ...usual, ...fields });
    expect(JSON.stringify(record)).toBe(before);
    // From now on it is an ordinary checkpoint.
    const saved = stored(checkpoint);
    expect(parseCheckpoint(saved, 'a')).toBe(saved);
  });

  it('get the usual value for what they leave out', () => {
    const record = { messages: [], usage: { inputTokens: 5 }, attempts: 0, lastError: { message: 'x' } };
    expect(parseCheckpoint(record, 'a')).toMatchObject({
      usage: { inputTokens: 5, outputTokens: 0, totalTokens: 5 },
      attempts: 0,
      lastError: { name: 'Error', message: 'x', retryable: true },
    });
    const other = { messages: [], usage: { completionTokens: 7 } };
    expect(parseCheckpoint(other, 'a').usage).toMatchObject({
      inputTokens: 0,
      outputTokens: 7,
      totalTokens: 7,
    });
  });

  it('keep their unknown cost unknown when the run goes on', () => {
    const { usage } = parseCheckpoint(read('three-token-counts.json'), 'a');
    const after = addModelCall(usage, 'm', { ...spent, costUsd: 0.01 });
    expect(after).toMatchObject({ totalTokens: 155, modelCalls: 1 });
    expect(after).not.toHaveProperty('costUsd');
  });

  it.each<readonly [string, object]>([
    ['without messages', { stepIndex: 1 }],
    ['with messages that are none', { messages: [{ role: 'user' }] }],
    ['with token counts that are no numbers', { messages: [], usage: { inputTokens: 'many' } }],
    ['with usage that is no object', { messages: [], usage: 'none' }],
    ['with models that are no object', { messages: [], usage: { byModel: [1] } }],
    ['with a status that never was', { messages: [], status: 'sleeping' }],
  ])('%s are damaged', (_case, record) => {
    expect(errorOf(() => parseCheckpoint(record, 'a')).code).toBe('LOUSHO_CHECKPOINT_CORRUPT');
  });
});

describe('damage', () => {
  const notAnObject: readonly unknown[] = [null, undefined, 0, '', 'text', true, [], [running], {}];

  it.each(notAnObject)('is what %j is, never an empty record', (record) => {
    for (const [kind, parse] of [
      ['checkpoint', parseCheckpoint],
      ['approval', parseApprovalRecord],
      ['session', parseSessionRecord],
    ] as const) {
      expect(errorOf(() => parse(record, 'the-id'))).toMatchObject({
        code: 'LOUSHO_CHECKPOINT_CORRUPT',
        retryable: false,
        details: { id: 'the-id', record: kind },
        message: `The stored ${kind} "the-id" is damaged.`,
        cause: expect.any(Error),
      });
    }
  });

  it.each([
    'version',
    'runId',
    'agentName',
    'messages',
    'stepIndex',
    'usage',
    'runInput',
    'heldInput',
    'inputIds',
  ])('is a checkpoint without %s', (field) => {
    const { [field]: _left, ...rest } = stored(running) as unknown as Record<string, unknown>;
    // Without its version a record is read as one of old, and this one has everything else.
    if (field === 'version') expect(() => parseCheckpoint(rest, 'a')).not.toThrow();
    else expect(errorOf(() => parseCheckpoint(rest, 'a')).code).toBe('LOUSHO_CHECKPOINT_CORRUPT');
  });

  it.each<readonly [string, readonly (string | number)[], unknown]>([
    ['a status that never was', ['status'], 'sleeping'],
    ['a version that is a text', ['version'], '1'],
    ['a negative version', ['version'], -1],
    ['a step that is no whole number', ['stepIndex'], 0.5],
    ['a negative step', ['stepIndex'], -1],
    ['messages that are no list', ['messages'], { 0: userSays('x') }],
    ['a message that is null', ['messages', 1], null],
    ['a message of an unknown role', ['messages', 1, 'role'], 'robot'],
    ['an assistant message that is a text', ['messages', 3, 'content'], 'hi'],
    ['a part of an unknown type', ['messages', 3, 'content', 0, 'type'], 'hologram'],
    ['a call without arguments', ['messages', 3, 'content', 7, 'args'], undefined],
    ['a call without an id', ['messages', 3, 'content', 7, 'toolCallId'], undefined],
    ['a result without a value', ['messages', 4, 'content', 0, 'result'], undefined],
    ['two results in one message', ['messages', 4, 'content'], [resultFor('a'), resultFor('b')]],
    ['no result in a tool message', ['messages', 4, 'content'], []],
    ['held input that is no message', ['heldInput', 0], 'later'],
    ['an early result that is none', ['settledResults', 0, 'type'], 'text'],
    ['an input id that is a number', ['inputIds', 0], 1],
    ['usage that counts in texts', ['usage', 'inputTokens'], '5'],
    ['usage without models', ['usage', 'byModel'], undefined],
    ['a model whose usage is a number', ['usage', 'byModel', 'm'], 5],
    ['a principal without an id', ['principal', 'id'], undefined],
    ['attempts below 0', ['attempts'], -1],
    ['a failure that does not say whether to try again', ['lastError', 'retryable'], undefined],
    ['a finish reason that is no abort', ['finishReason'], 'stop'],
    ['a time that is a number', ['savedAt'], 5],
  ])('is a checkpoint with %s', (_case, path, value) => {
    expect(errorOf(() => parseCheckpoint(changedAt(running, path, value), 'a')).code).toBe(
      'LOUSHO_CHECKPOINT_CORRUPT',
    );
  });

  it.each<readonly [string, readonly (string | number)[], unknown]>([
    ['an approval of an unknown kind', ['approvals', 0, 'kind'], 'wish'],
    ['an approval without a hash', ['approvals', 0, 'argsHash'], undefined],
    ['a decision that says neither yes nor no', ['approvals', 1, 'decision', 'approved'], undefined],
    ['no approval ids', ['approvalIds'], undefined],
  ])('is a paused checkpoint with %s', (_case, path, value) => {
    expect(errorOf(() => parseCheckpoint(changedAt(paused, path, value), 'a')).code).toBe(
      'LOUSHO_CHECKPOINT_CORRUPT',
    );
  });

  it('never becomes another error, and never another value', () => {
    const record = fc.constantFrom<object>(running, paused, finished, approval, session);
    fc.assert(
      fc.property(
        record,
        fc.array(fc.nat(), { minLength: 1, maxLength: 5 }),
        anyJson(2),
        (good, path, value) => {
          const damaged = damagedAt(stored(good), path, value);
          for (const parse of [parseCheckpoint, parseApprovalRecord, parseSessionRecord]) {
            const before = JSON.stringify(damaged);
            try {
              const accepted: object = parse(damaged, 'a');
              if ((damaged as Partial<Checkpoint>).version !== undefined) expect(accepted).toBe(damaged);
            } catch (error) {
              expect(
                isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT') ||
                  isSDKError(error, 'LOUSHO_STORE_VERSION_UNSUPPORTED'),
              ).toBe(true);
            }
            expect(JSON.stringify(damaged)).toBe(before);
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

describe('isMessage', () => {
  it('knows every message that can be stored', () => {
    for (const message of messages) expect(isMessage(message)).toBe(true);
  });

  it.each<readonly [string, unknown]>([
    ['nothing', undefined],
    ['a text', 'hi'],
    ['a list', [userSays('x')]],
    ['an unknown role', { role: 'robot', content: 'x' }],
    ['a user message without content', { role: 'user' }],
    ['a tool message with two results', { role: 'tool', content: [resultFor('a'), resultFor('b')] }],
  ])('is false for %s', (_case, value) => {
    expect(isMessage(value)).toBe(false);
  });

  it('looks again at a message that its owner has changed', () => {
    const message = { role: 'user', content: 'x' } as Record<string, unknown>;
    expect(isMessage(message)).toBe(true);
    message.content = 5;
    expect(isMessage(message)).toBe(false);
  });
});

describe('parseApprovalRecord and parseSessionRecord', () => {
  it('give back what was stored', () => {
    const record = stored({ ...approval, later: 1 });
    expect(parseApprovalRecord(record, 'a')).toBe(record);
    const conversation = stored({ ...session, later: 1 });
    expect(parseSessionRecord(conversation, 's')).toBe(conversation);
  });

  it('take records with no more than what is needed', () => {
    const {
      sessionId: _s,
      question: _q,
      subagentPath: _p,
      principal: _w,
      expiresAt: _e,
      snapshot: _n,
      ...least
    } = approval;
    expect(parseApprovalRecord(least, 'a')).toBe(least);
    const { businessState: _state, ...bare } = session;
    expect(parseSessionRecord(bare, 's')).toBe(bare);
  });

  it('tell a snapshot of old, which does not say what remains, from one where nothing does', () => {
    const old = stored({ ...approval, snapshot: { checkpoints: [] } });
    expect(parseApprovalRecord(old, 'a').snapshot).not.toHaveProperty('remainingToolCalls');
    expect(parseApprovalRecord(stored(approval), 'a').snapshot?.remainingToolCalls).toEqual([]);
  });
});

function withoutModels(): ModelUsage {
  const { byModel: _models, ...nothing } = emptyUsage;
  return nothing;
}

function errorOf(act: () => unknown): SDKError {
  try {
    act();
  } catch (error) {
    if (error instanceof SDKError) return error;
    throw error;
  }
  throw new Error('Nothing was thrown.');
}

/** A copy with the value at the path; `undefined` takes the field away. */
function changedAt(record: object, path: readonly (string | number)[], value: unknown): unknown {
  const copy = stored(record);
  let target = copy as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) target = target[key] as typeof target;
  const last = path.at(-1)!;
  if (value === undefined) delete target[last];
  else target[last] = value;
  return copy;
}

/** The record with a value where a random path leads. */
function damagedAt(record: object, path: readonly number[], value: JsonValue): object {
  let target = record as Record<string, unknown>;
  for (const [depth, at] of path.entries()) {
    const keys = Object.keys(target);
    const key = keys[at % keys.length] ?? 'new';
    const inner = target[key];
    if (depth === path.length - 1 || typeof inner !== 'object' || inner === null) {
      target[key] = value;
      break;
    }
    target = inner as typeof target;
  }
  return record;
}
