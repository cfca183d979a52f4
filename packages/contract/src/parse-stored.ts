/** Stored data on its way in: older shapes are upgraded step by step, damage is named, and the rest of the code sees one shape. */
import type { z } from 'zod';
import type { ApprovalRecord } from './approval.ts';
import { CHECKPOINT_VERSION, type Checkpoint } from './checkpoint.ts';
import { ConfigurationError, SDKError } from './errors.ts';
import type { ErrorDetails } from './error-codes.ts';
import { objectOf } from './json.ts';
import { storedSchemas } from './schemas.ts';
import type { SessionRecord } from './session.ts';
import { emptyUsage } from './usage.ts';

/** Upgrades an older shape. @throws synchronously LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_VERSION_UNSUPPORTED. */
export function parseCheckpoint(stored: unknown, id: string): Checkpoint {
  const upgraded = isRecord(stored) ? upgradeCheckpoint(stored) : stored;
  return accept<Checkpoint>(storedSchemas().checkpoint, upgraded, { id, record: 'checkpoint' });
}

/** @throws synchronously LOUSHO_CHECKPOINT_CORRUPT with `record: 'approval'`. */
export function parseApprovalRecord(stored: unknown, id: string): ApprovalRecord {
  return accept<ApprovalRecord>(storedSchemas().approvalRecord, stored, { id, record: 'approval' });
}

/** @throws synchronously LOUSHO_CHECKPOINT_CORRUPT with `record: 'session'`. */
export function parseSessionRecord(stored: unknown, id: string): SessionRecord {
  return accept<SessionRecord>(storedSchemas().sessionRecord, stored, { id, record: 'session' });
}

function accept<Shape>(
  schema: z.ZodType,
  value: unknown,
  record: ErrorDetails['LOUSHO_CHECKPOINT_CORRUPT'],
): Shape {
  const checked = schema.safeParse(value);
  if (!checked.success) throw new SDKError('LOUSHO_CHECKPOINT_CORRUPT', record, { cause: checked.error });
  return value as Shape;
}

/**
 * Version 0 is what was stored before checkpoints had a version: status, usage, run ids, held input, early results, start marks and
 * approvals may all be missing. A record without a status is unfinished: finished ones were deleted then.
 */
function upgradeCheckpoint(stored: Record<string, unknown>): Record<string, unknown> {
  const { version } = stored;
  if (typeof version === 'number' && version > CHECKPOINT_VERSION) {
    throw new ConfigurationError('LOUSHO_STORE_VERSION_UNSUPPORTED', {
      found: version,
      supported: CHECKPOINT_VERSION,
    });
  }
  return version === undefined ? fromVersion0(stored) : stored;
}

function fromVersion0(stored: Record<string, unknown>): Record<string, unknown> {
  const {
    finishReason: _reason,
    lastError: _error,
    attempts: _attempts,
    approvalId: _id,
    approvalIds: _ids,
    ...rest
  } = stored;
  return {
    status: 'in-progress',
    runId: '0',
    agentName: 'agent',
    stepIndex: 0,
    runInput: { start: 0, count: 0 },
    heldInput: [],
    inputIds: [],
    settledResults: [],
    startedToolCallIds: [],
    approvals: [],
    delegatedInFlight: [],
    savedAt: new Date(0).toISOString(),
    ...rest,
    ...standingFromVersion0(stored),
    usage: usageFromVersion0(stored.usage),
    version: CHECKPOINT_VERSION,
  };
}

/**
 * How the run stands, in today's words. Reasons that are no more are `other`; an unfinished run has none but `aborted`. One that waited for
 * a person is interrupted: what was asked is not in it, so nobody could answer. Its next resume asks again, before anything runs.
 */
function standingFromVersion0(stored: Record<string, unknown>): Record<string, unknown> {
  const { status, finishReason } = stored;
  if (status === 'finished') {
    const known = storedSchemas().runEnd.safeParse(finishReason).success;
    return { finishReason: known ? finishReason : 'other' };
  }
  return {
    ...(status === 'awaiting-approval' ? { status: 'in-progress' } : {}),
    ...(finishReason === 'aborted' ? { finishReason } : {}),
    ...(isRecord(stored.lastError)
      ? { lastError: { name: 'Error', retryable: true, ...stored.lastError } }
      : {}),
    ...(Number.isSafeInteger(stored.attempts) && Number(stored.attempts) >= 0
      ? { attempts: stored.attempts }
      : {}),
  };
}

/** Old records held two or three token counts at most, under either name. What they cost is unknown. */
function usageFromVersion0(stored: unknown): unknown {
  if (stored === undefined) return emptyUsage;
  if (!isRecord(stored)) return stored;
  const { byModel = {}, delegated } = stored;
  return {
    ...spendFromVersion0(stored),
    byModel: isRecord(byModel) ? spendsFromVersion0(byModel) : byModel,
    ...(isRecord(delegated) ? { delegated: { runs: 0, ...spendFromVersion0(delegated) } } : {}),
  };
}

function spendsFromVersion0(byModel: Record<string, unknown>): object {
  return objectOf(
    Object.entries(byModel).map(([id, spent]) => [id, isRecord(spent) ? spendFromVersion0(spent) : spent]),
  );
}

function spendFromVersion0(stored: Record<string, unknown>): Record<string, unknown> {
  const { byModel: _models, delegated: _delegated, costUsd, estimated, ...counts } = stored;
  const { byModel: _none, ...nothing } = emptyUsage;
  const inputTokens = stored.inputTokens ?? stored.promptTokens ?? 0;
  const outputTokens = stored.outputTokens ?? stored.completionTokens ?? 0;
  return {
    ...nothing,
    totalTokens:
      typeof inputTokens === 'number' && typeof outputTokens === 'number' ? inputTokens + outputTokens : 0,
    modelCalls: stored.calls ?? 0,
    ...counts,
    inputTokens,
    outputTokens,
    ...(typeof costUsd === 'number' ? { costUsd } : {}),
    ...(estimated === true ? { estimated } : {}),
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
