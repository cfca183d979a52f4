/** Errors say what happened, keep their class across two copies of the package, and can always be stored. */
import fc from 'fast-check';
import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  ConfigurationError,
  LLMProviderError,
  PropagatingToolError,
  SDKError,
  SessionAwaitingApprovalError,
  cutText,
  errorTable,
  isSDKError,
  storedError,
  type ConfigurationErrorCode,
  type ErrorCode,
  type ErrorDetails,
} from '../src/index.ts';
import { errorSamples } from './support/error-samples.ts';

/** As a second installed copy: the same source, loaded again. */
const copyUrl = '../src/errors.ts?copy=2';
const other = (await import(/* @vite-ignore */ copyUrl)) as typeof import('../src/errors.ts');

const codes = Object.keys(errorTable) as readonly ErrorCode[];
const samples = codes.flatMap((code) =>
  errorSamples[code].map((details, index) => [code, index, details] as const),
);
const waiting = {
  sessionId: 'a',
  approvalId: 'x',
  approvalIds: ['x', 'y'],
  approvalKind: 'question',
} as const;

describe('every code', () => {
  it.each(samples)('%s makes a whole sentence of its details (%i)', (code, _index, details) => {
    const error = new SDKError(code, details);
    expect(error.message).toMatch(/^[A-Za-z"].*[.\w]$/s);
    expect(error.message).not.toMatch(/undefined|null\b.*null|\[object|NaN|\.\.$| {2}/);
    expect(error.message.length).toBeLessThan(400);
    if (error.hint !== undefined) expect(error.hint).toMatch(/^[A-Za-z].*\.$/);
    expect(error).toMatchObject({ name: 'SDKError', code, details, retryable: errorTable[code].retryable });
    expect(error).not.toHaveProperty('cause');
    expect(error.stack).toContain(error.message.split('\n')[0]);
  });

  it('has a hint, apart from the few whose sentence says it all', () => {
    const without = codes.filter((code) => new SDKError(code, errorSamples[code][0]).hint === undefined);
    expect(without).toEqual([
      'LOUSHO_APPROVAL_DECIDED',
      'LOUSHO_TOOL_PROPAGATED',
      'LOUSHO_CONFIG_INVALID',
      'LOUSHO_CONFIG_RESOLVER_FAILED',
      'LOUSHO_PROVIDER_ERROR',
      'LOUSHO_SCHEDULE_INVALID',
      'LOUSHO_SCHEDULE_RUN_INCOMPLETE',
    ]);
  });

  it('is final unless the same call may succeed later', () => {
    expect(codes.filter((code) => errorTable[code].retryable)).toEqual([
      'LOUSHO_SESSION_BUSY',
      'LOUSHO_TOOL_PROPAGATED',
      'LOUSHO_SHUTDOWN',
      'LOUSHO_CONFIG_RESOLVER_FAILED',
      'LOUSHO_STORE_READ_FAILED',
      'LOUSHO_STORE_WRITE_FAILED',
      'LOUSHO_PROVIDER_ERROR',
      'LOUSHO_REMOTE_FAILED',
      'LOUSHO_SCHEDULE_RUN_INCOMPLETE',
    ]);
  });

  it('follows one grammar', () => {
    for (const code of codes) expect(code).toMatch(/^LOUSHO(_[A-Z]+)+$/);
  });

  it('says which details were wrong in words', () => {
    const messageOf = (got: unknown): string =>
      new ConfigurationError('LOUSHO_CONFIG_INVALID', { option: 'o', got, want: 'w' }).message;
    expect(messageOf('5')).toBe('The option "o" must be w; got "5".');
    expect(messageOf({})).toBe('The option "o" must be w; got an object.');
    expect(messageOf([])).toBe('The option "o" must be w; got a list.');
    expect(messageOf(() => 1)).toBe('The option "o" must be w; got a function.');
    expect(new SDKError('LOUSHO_AGENT_DRIFT', errorSamples.LOUSHO_AGENT_DRIFT[0]).message).toBe(
      'The agent that resumes "order-7" is not the one that began it: sub-agent mailer: model large is now small, tool look_up added, tool search removed, input of tool pay changed, instructions changed. Nothing was changed.',
    );
    expect(new SDKError('LOUSHO_TOOL_ARGS_INVALID', errorSamples.LOUSHO_TOOL_ARGS_INVALID[0]).message).toBe(
      'The changed arguments do not fit the tool "pay": items[0].cents: expected a number; expected an object',
    );
  });
});

describe('SDKError', () => {
  it('keeps the cause, and takes another sentence or another answer to "try again?"', () => {
    const cause = new Error('ECONNRESET');
    const error = new SDKError(
      'LOUSHO_STORE_READ_FAILED',
      { operation: 'load' },
      { cause, message: 'Gone.', retryable: false },
    );
    expect(error).toMatchObject({ cause, message: 'Gone.', retryable: false });
  });

  it('is an Error with its details typed by its code', () => {
    const error: unknown = new SDKError('LOUSHO_CHECKPOINT_NOT_FOUND', {
      sessionId: 'a',
      fromStep: 3,
      keptSteps: [1],
    });
    expect(error).toBeInstanceOf(Error);
    expect(isSDKError(error, 'LOUSHO_SESSION_BUSY')).toBe(false);
    if (!isSDKError(error, 'LOUSHO_CHECKPOINT_NOT_FOUND')) throw new Error('wrong code');
    expectTypeOf(error.details).toEqualTypeOf<ErrorDetails['LOUSHO_CHECKPOINT_NOT_FOUND']>();
    expectTypeOf(error.details.keptSteps).toEqualTypeOf<readonly number[]>();
    expect(error.details.keptSteps).toEqual([1]);
  });

  it('accepts no details of another code', () => {
    // @ts-expect-error: these are the details of LOUSHO_SESSION_BUSY.
    const wrong = new SDKError('LOUSHO_MOCK_EXHAUSTED', { sessionId: 'a' });
    expect(wrong.code).toBe('LOUSHO_MOCK_EXHAUSTED');
  });
});

describe('the subclasses', () => {
  it('have the fields that a catch needs', () => {
    expect(new SessionAwaitingApprovalError(waiting)).toMatchObject({
      name: 'SessionAwaitingApprovalError',
      code: 'LOUSHO_SESSION_AWAITING_APPROVAL',
      retryable: false,
      ...waiting,
    });
    const details = { kind: 'api', retryable: false, status: 400, retryAfterMs: 5 } as const;
    expect(new LLMProviderError('Bad request', details, { cause: 'c' })).toMatchObject({
      name: 'LLMProviderError',
      code: 'LOUSHO_PROVIDER_ERROR',
      message: 'Bad request',
      retryable: false,
      kind: 'api',
      status: 400,
      retryAfterMs: 5,
      cause: 'c',
      details,
    });
    expect(new LLMProviderError('x', { kind: 'network', retryable: true })).not.toHaveProperty('status');
    expect(new PropagatingToolError('No more money', { cause: 'c' })).toMatchObject({
      name: 'PropagatingToolError',
      code: 'LOUSHO_TOOL_PROPAGATED',
      message: 'No more money',
      retryable: true,
      cause: 'c',
    });
    expect(new PropagatingToolError('x', { retryable: false }).retryable).toBe(false);
    expect(new ConfigurationError('LOUSHO_INPUT_EMPTY', {})).toMatchObject({
      name: 'ConfigurationError',
      details: {},
    });
  });

  it('tell set-up errors from all others by type', () => {
    expectTypeOf<'LOUSHO_CONFIG_INVALID'>().toExtend<ConfigurationErrorCode>();
    expectTypeOf<'LOUSHO_SCHEDULE_INVALID'>().toExtend<ConfigurationErrorCode>();
    expectTypeOf<'LOUSHO_SESSION_BUSY'>().not.toExtend<ConfigurationErrorCode>();
  });
});

describe('instanceof', () => {
  class RefundError extends SDKError<'LOUSHO_TOOL_PROPAGATED'> {
    constructor() {
      super('LOUSHO_TOOL_PROPAGATED', {}, { message: 'refund' });
    }
  }
  class QuotaError extends PropagatingToolError {}
  class OtherQuotaError extends other.PropagatingToolError {}

  it('is tested with two copies that really are two', () => {
    expect(other.SDKError).not.toBe(SDKError);
    expect(Object.getPrototypeOf(new other.SDKError('LOUSHO_SHUTDOWN', {}))).not.toBe(SDKError.prototype);
  });

  const made = {
    'an SDKError': () => new SDKError('LOUSHO_SHUTDOWN', {}),
    'an SDKError of the other copy': () => new other.SDKError('LOUSHO_SHUTDOWN', {}),
    'a ConfigurationError': () => new ConfigurationError('LOUSHO_INPUT_EMPTY', {}),
    'a ConfigurationError of the other copy': () => new other.ConfigurationError('LOUSHO_INPUT_EMPTY', {}),
    'a SessionAwaitingApprovalError of the other copy': () => new other.SessionAwaitingApprovalError(waiting),
    'a PropagatingToolError of the other copy': () => new other.PropagatingToolError('x'),
    'an LLMProviderError of the other copy': () =>
      new other.LLMProviderError('x', { kind: 'api', retryable: true }),
    'a RefundError': () => new RefundError(),
    'a QuotaError': () => new QuotaError('x'),
    'an OtherQuotaError': () => new OtherQuotaError('x'),
    'an Error': () => new Error('x'),
    null: () => null,
    'a text': () => 'x',
    'a parsed error': () => JSON.parse(JSON.stringify(new SDKError('LOUSHO_SHUTDOWN', {}))) as unknown,
    'an object without a prototype': () => Object.create(null) as unknown,
  } satisfies Record<string, () => unknown>;
  const classes = {
    SDKError,
    ConfigurationError,
    SessionAwaitingApprovalError,
    PropagatingToolError,
    LLMProviderError,
    RefundError,
    QuotaError,
  };
  it.each<readonly [keyof typeof made, readonly (keyof typeof classes)[]]>([
    ['an SDKError', ['SDKError']],
    ['an SDKError of the other copy', ['SDKError']],
    ['a ConfigurationError', ['SDKError', 'ConfigurationError']],
    ['a ConfigurationError of the other copy', ['SDKError', 'ConfigurationError']],
    ['a SessionAwaitingApprovalError of the other copy', ['SDKError', 'SessionAwaitingApprovalError']],
    ['a PropagatingToolError of the other copy', ['SDKError', 'PropagatingToolError']],
    ['an LLMProviderError of the other copy', ['SDKError', 'LLMProviderError']],
    ['a RefundError', ['SDKError', 'RefundError']],
    ['a QuotaError', ['SDKError', 'PropagatingToolError', 'QuotaError']],
    ['an OtherQuotaError', ['SDKError', 'PropagatingToolError']],
    ['an Error', []],
    ['null', []],
    ['a text', []],
    ['a parsed error', []],
    ['an object without a prototype', []],
  ])('says that %s is %j', (name, expected) => {
    const value: unknown = made[name]();
    const names = Object.entries(classes).filter(([, type]) => value instanceof type);
    expect(names.map(([className]) => className)).toEqual(expected);
  });

  it('holds for isSDKError too', () => {
    expect(isSDKError(new other.SDKError('LOUSHO_SHUTDOWN', {}), 'LOUSHO_SHUTDOWN')).toBe(true);
    expect(isSDKError(new RefundError(), 'LOUSHO_TOOL_PROPAGATED')).toBe(true);
    expect(isSDKError(new Error('x'), 'LOUSHO_SHUTDOWN')).toBe(false);
  });

  it('shows nothing of how it works', () => {
    expect(Object.keys(new SDKError('LOUSHO_SHUTDOWN', {})).sort()).toEqual([
      'code',
      'details',
      'hint',
      'name',
      'retryable',
    ]);
  });
});

describe('storedError', () => {
  const unreadable = Object.defineProperty(new Error(), 'message', { get: fail });
  it.each<readonly [string, unknown, object]>([
    ['an Error', new TypeError('x'), { name: 'TypeError', message: 'x', retryable: true }],
    ['a text', 'x', { name: 'Error', message: 'x', retryable: true }],
    ['undefined', undefined, { name: 'Error', message: 'undefined', retryable: true }],
    ['null', null, { name: 'Error', message: 'null', retryable: true }],
    ['a symbol', Symbol('x'), { name: 'Error', message: 'Symbol(x)', retryable: true }],
    ['an object', {}, { name: 'Error', message: 'An object without a message was thrown.', retryable: true }],
    ['an object with a message', { message: 'x', name: 5 }, { name: 'Error', message: 'x', retryable: true }],
    [
      'an error with a code',
      Object.assign(new Error('x'), { code: 'EIO' }),
      { name: 'Error', message: 'x', code: 'EIO', retryable: true },
    ],
    [
      'an error with a number as code',
      Object.assign(new Error('x'), { code: 5 }),
      { name: 'Error', message: 'x', retryable: true },
    ],
    [
      'a final error',
      Object.assign(new Error('x'), { retryable: false }),
      { name: 'Error', message: 'x', retryable: false },
    ],
    [
      'an error that says nothing sensible',
      Object.assign(new Error('x'), { retryable: 'no' }),
      { name: 'Error', message: 'x', retryable: true },
    ],
    [
      'an error that throws when it is read',
      unreadable,
      { name: 'Error', message: 'An error that cannot be read was thrown.', retryable: true },
    ],
    [
      'one of ours',
      new SDKError('LOUSHO_SHUTDOWN', {}, { cause: new Error('secret') }),
      { name: 'SDKError', message: 'The agent is shutting down.', code: 'LOUSHO_SHUTDOWN', retryable: true },
    ],
  ])('keeps name, message, code and "try again?" of %s, and no more', (_name, error, expected) => {
    expect(storedError(error)).toEqual(expected);
    expect(JSON.parse(JSON.stringify(storedError(error)))).toEqual(expected);
  });

  it('is what JSON.stringify makes of one of ours', () => {
    const error = new LLMProviderError('x', { kind: 'api', retryable: false });
    expect(JSON.parse(JSON.stringify({ error }))).toEqual({ error: storedError(error) });
  });

  it('never holds more than 2,048 units of message, and never half a character', () => {
    const unit = fc.constantFrom('a', '\u00e9', '\ud83d\ude00', '\ud83d', '\ude00');
    fc.assert(
      fc.property(fc.nat({ max: 5 }), fc.array(unit, { maxLength: 5 }), (offset, tail) => {
        const text = `${'a'.repeat(2_045 + offset)}${tail.join('')}`;
        const { message } = storedError(new Error(text));
        expect(message.length).toBeLessThanOrEqual(2_048);
        expect(message.isWellFormed()).toBe(true);
        expect(text.toWellFormed().startsWith(message)).toBe(true);
        expect(message.length).toBeGreaterThanOrEqual(Math.min(text.length, 2_047));
      }),
    );
    const pair = `${'a'.repeat(2_047)}\ud83d\ude00`;
    expect(storedError(new Error(pair)).message).toBe('a'.repeat(2_047));
    expect(storedError(new Error('x'.repeat(5_000))).message).toHaveLength(2_048);
  });

  it('cuts names and codes too', () => {
    const error = Object.assign(new Error('x'), { name: 'n'.repeat(500), code: 'c'.repeat(500) });
    expect(storedError(error)).toMatchObject({ name: 'n'.repeat(200), code: 'c'.repeat(200) });
  });
});

describe('cutText', () => {
  it.each([
    ['', 5, ''],
    ['abc', 3, 'abc'],
    ['abc', 2, 'ab'],
    ['abc', 0, ''],
    ['a\ud83d\ude00b', 2, 'a'],
    ['a\ud83d\ude00b', 3, 'a\ud83d\ude00'],
    ['\ud83d', 5, '\ufffd'],
  ])('cuts %j at %i to %j', (text, length, expected) => {
    expect(cutText(text, length)).toBe(expected);
  });
});

function fail(): never {
  throw new Error('thrown by a getter');
}
