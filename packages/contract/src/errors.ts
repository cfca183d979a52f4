/** The one error class of Lousho and the few subclasses whose fields a `catch` needs. */
import { errorTable, type ErrorCode, type ErrorDetails, type LLMErrorDetails } from './error-codes.ts';
import type { ApprovalKind } from './checkpoint.ts';
import type { StoredError } from './run.ts';

export interface SDKErrorOptions {
  /** Default: the code's own sentence. */
  readonly message?: string | undefined;
  readonly cause?: unknown;
  /** Default: the code's own. */
  readonly retryable?: boolean | undefined;
}

/** Class names by brand: `instanceof` asks for the brand, so it holds for an error of a second installed copy. */
const BRAND = Symbol.for('lousho.error');

/** Every error of ours. `instanceof` also holds for an error of a second installed copy. */
export class SDKError<C extends ErrorCode = ErrorCode> extends Error {
  static readonly [BRAND]: string = 'SDKError';

  static override [Symbol.hasInstance](value: unknown): value is SDKError {
    return hasBrand(value, this);
  }

  readonly code: C;
  readonly details: ErrorDetails[C];
  readonly retryable: boolean;
  /** What to do next, when we know. */
  declare readonly hint?: string;

  constructor(code: C, details: ErrorDetails[C], options: SDKErrorOptions = {}) {
    const entry = errorTable[code];
    super(
      options.message ?? entry.message(details),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = 'SDKError';
    this.code = code;
    this.details = details;
    this.retryable = options.retryable ?? entry.retryable;
    const hint = entry.hint?.(details);
    if (hint !== undefined) this.hint = hint;
    addBrand(this, 'SDKError');
  }

  /** The stored form: no stack, message of at most 2,048 UTF-16 units. */
  toJSON(): StoredError {
    return storedError(this);
  }
}

/** Narrows `details` to those of `code`. */
export function isSDKError<C extends ErrorCode>(error: unknown, code: C): error is SDKError<C> {
  return error instanceof SDKError && error.code === code;
}

export type ConfigurationErrorCode =
  | Extract<ErrorCode, `LOUSHO_CONFIG_${string}`>
  | 'LOUSHO_INPUT_EMPTY'
  | 'LOUSHO_STORE_VERSION_UNSUPPORTED'
  | 'LOUSHO_SCHEDULE_INVALID';

/** Thrown for the codes of `ConfigurationErrorCode`: the call or the set-up is wrong, not the world. */
export class ConfigurationError<
  C extends ConfigurationErrorCode = ConfigurationErrorCode,
> extends SDKError<C> {
  static override readonly [BRAND]: string = 'ConfigurationError';

  static override [Symbol.hasInstance](value: unknown): value is ConfigurationError {
    return hasBrand(value, this);
  }

  constructor(code: C, details: ErrorDetails[C], options: SDKErrorOptions = {}) {
    super(code, details, options);
    this.name = 'ConfigurationError';
    addBrand(this, 'ConfigurationError');
  }
}

/** The run waits for a person: new input must not bypass the decision. */
export class SessionAwaitingApprovalError extends SDKError<'LOUSHO_SESSION_AWAITING_APPROVAL'> {
  static override readonly [BRAND]: string = 'SessionAwaitingApprovalError';

  static override [Symbol.hasInstance](value: unknown): value is SessionAwaitingApprovalError {
    return hasBrand(value, this);
  }

  readonly sessionId: string;
  /** First of `approvalIds`. */
  readonly approvalId: string;
  readonly approvalIds: readonly string[];
  readonly approvalKind: ApprovalKind;

  constructor(details: ErrorDetails['LOUSHO_SESSION_AWAITING_APPROVAL'], options: SDKErrorOptions = {}) {
    super('LOUSHO_SESSION_AWAITING_APPROVAL', details, options);
    this.name = 'SessionAwaitingApprovalError';
    this.sessionId = details.sessionId;
    this.approvalId = details.approvalId;
    this.approvalIds = details.approvalIds;
    this.approvalKind = details.approvalKind;
    addBrand(this, 'SessionAwaitingApprovalError');
  }
}

/** Thrown by a tool: rejects the run instead of becoming an error result. Siblings finish first and keep their results. */
export class PropagatingToolError extends SDKError<'LOUSHO_TOOL_PROPAGATED'> {
  static override readonly [BRAND]: string = 'PropagatingToolError';

  static override [Symbol.hasInstance](value: unknown): value is PropagatingToolError {
    return hasBrand(value, this);
  }

  constructor(
    message: string,
    options: { readonly cause?: unknown; readonly retryable?: boolean | undefined } = {},
  ) {
    super('LOUSHO_TOOL_PROPAGATED', {}, { ...options, message });
    this.name = 'PropagatingToolError';
    addBrand(this, 'PropagatingToolError');
  }
}

/** Thrown by `LLMProvider`. Anything else that a provider throws is wrapped in one; an abort of `request.signal` passes as it is. */
export class LLMProviderError extends SDKError<'LOUSHO_PROVIDER_ERROR'> {
  static override readonly [BRAND]: string = 'LLMProviderError';

  static override [Symbol.hasInstance](value: unknown): value is LLMProviderError {
    return hasBrand(value, this);
  }

  readonly kind: LLMErrorDetails['kind'];
  declare readonly status?: number;
  declare readonly retryAfterMs?: number;

  constructor(message: string, details: LLMErrorDetails, options: { readonly cause?: unknown } = {}) {
    super('LOUSHO_PROVIDER_ERROR', details, { message, cause: options.cause, retryable: details.retryable });
    this.name = 'LLMProviderError';
    this.kind = details.kind;
    if (details.status !== undefined) this.status = details.status;
    if (details.retryAfterMs !== undefined) this.retryAfterMs = details.retryAfterMs;
    addBrand(this, 'LLMProviderError');
  }
}

/** A failure as a checkpoint keeps it. An error that does not say otherwise counts as retryable: `recover()` limits the attempts. */
export function storedError(error: unknown): StoredError {
  const { name, message, code, retryable } = readError(error);
  return {
    name,
    message: cutText(message, MAX_STORED_MESSAGE_LENGTH),
    ...(code === undefined ? {} : { code }),
    retryable,
  };
}

/** Long enough for every sentence of ours and a provider's answer, short enough to be listed by the thousand. */
const MAX_STORED_MESSAGE_LENGTH = 2_048;

/** At most `length` UTF-16 units, never half a surrogate pair. */
export function cutText(text: string, length: number): string {
  const whole = text.toWellFormed();
  if (whole.length <= length) return whole;
  const cut = whole.slice(0, length);
  const last = cut.charCodeAt(cut.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? cut.slice(0, -1) : cut;
}

interface ReadError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly retryable: boolean;
}

/** Whatever was thrown, also what breaks when it is looked at: recording a failure must not fail. */
function readError(error: unknown): ReadError {
  if (typeof error !== 'object' || error === null)
    return { name: 'Error', message: String(error), retryable: true };
  try {
    const { name, message, code, retryable } = error as { readonly [field in keyof ReadError]?: unknown };
    return {
      name: typeof name === 'string' ? cutText(name, 200) : 'Error',
      message: typeof message === 'string' ? message : 'An object without a message was thrown.',
      ...(typeof code === 'string' ? { code: cutText(code, 200) } : {}),
      retryable: retryable !== false,
    };
  } catch {
    return { name: 'Error', message: 'An error that cannot be read was thrown.', retryable: true };
  }
}

function addBrand(error: Error, className: string): void {
  const brands = (error as unknown as Record<symbol, readonly string[] | undefined>)[BRAND] ?? [];
  Object.defineProperty(error, BRAND, { value: [...brands, className], configurable: true });
}

/**
 * A class of the application that extends one of ours is asked the ordinary way: only its own chain decides. The class is not named here:
 * a class that names itself gets another name from bundlers, and that one would stand in stack traces.
 */
function hasBrand(value: unknown, asked: { readonly [BRAND]: string; readonly prototype: object }): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (!Object.hasOwn(asked, BRAND)) return Object.prototype.isPrototypeOf.call(asked.prototype, value);
  return (value as Record<symbol, readonly string[] | undefined>)[BRAND]?.includes(asked[BRAND]) ?? false;
}
