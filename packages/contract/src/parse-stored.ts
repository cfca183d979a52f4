/** Stored data on its way in: older shapes are upgraded step by step, damage is named, and the rest of the code sees one shape. */
import type { z } from 'zod';
import type { ApprovalRecord } from './approval.ts';
import { CHECKPOINT_VERSION, type Checkpoint } from './checkpoint.ts';
import { ConfigurationError, SDKError } from './errors.ts';
import type { ErrorDetails } from './error-codes.ts';
import { approvalRecordSchema, checkpointSchema, sessionRecordSchema } from './schemas.ts';
import type { SessionRecord } from './session.ts';
import { emptyUsage } from './usage.ts';

/** Upgrades an older shape. @throws synchronously LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_VERSION_UNSUPPORTED. */
export function parseCheckpoint(stored: unknown, id: string): Checkpoint {
  const upgraded = isRecord(stored) ? upgradeCheckpoint(stored) : stored;
  return accept<Checkpoint>(checkpointSchema, upgraded, { id, record: 'checkpoint' });
}

/** @throws synchronously LOUSHO_CHECKPOINT_CORRUPT with `record: 'approval'`. */
export function parseApprovalRecord(stored: unknown, id: string): ApprovalRecord {
  return accept<ApprovalRecord>(approvalRecordSchema, stored, { id, record: 'approval' });
}

/** @throws synchronously LOUSHO_CHECKPOINT_CORRUPT with `record: 'session'`. */
export function parseSessionRecord(stored: unknown, id: string): SessionRecord {
  return accept<SessionRecord>(sessionRecordSchema, stored, { id, record: 'session' });
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
    ...stored,
    usage: usageFromVersion0(stored.usage),
    version: CHECKPOINT_VERSION,
  };
}

/** Old records held two or three token counts at most; their cost is unknown. */
function usageFromVersion0(stored: unknown): unknown {
  if (stored === undefined) return emptyUsage;
  if (!isRecord(stored)) return stored;
  const { inputTokens = 0, outputTokens = 0 } = stored;
  return { ...emptyUsage, totalTokens: Number(inputTokens) + Number(outputTokens), ...stored };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
