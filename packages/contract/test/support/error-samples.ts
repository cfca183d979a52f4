/** Details for every code, once with all that is optional and once without. The type makes it complete. */
import type { ErrorCode, ErrorDetails } from '../../src/index.ts';

const FIRST = 'order-7.apr-0b9f6c1e-1-0';
const SECOND = 'order-7.apr-0b9f6c1e-1-1';
const lastError = { name: 'Error', message: 'overloaded', retryable: true };

export const errorSamples: { readonly [C in ErrorCode]: readonly [ErrorDetails[C], ...ErrorDetails[C][]] } = {
  LOUSHO_SESSION_BUSY: [
    { sessionId: 'order-7', leaseFreeAtMs: 5 },
    { sessionId: 'order-7', executed: true },
    { sessionId: 'order-7' },
  ],
  LOUSHO_SESSION_AWAITING_APPROVAL: [
    { sessionId: 'order-7', approvalId: FIRST, approvalIds: [FIRST, SECOND], approvalKind: 'tool' },
  ],
  LOUSHO_SESSION_TURN_FAILED: [{ sessionId: 'order-7', lastError }],
  LOUSHO_SESSION_ID_INVALID: [{ sessionId: 'order/7', rule: 'a run id has only A-Z a-z 0-9 _ . -' }],
  LOUSHO_SESSION_EXISTS: [{ sessionId: 'order-7' }],
  LOUSHO_INPUT_EMPTY: [{ sessionId: 'order-7' }, {}],
  LOUSHO_CHECKPOINT_CORRUPT: [
    { id: 'order-7', record: 'checkpoint' },
    { id: 'order-7', record: 'session' },
    { id: 'order-7', record: 'history' },
    { id: 'order-7', record: 'approval' },
  ],
  LOUSHO_CHECKPOINT_NOT_FOUND: [
    { sessionId: 'order-7', fromStep: 3, keptSteps: [1, 2] },
    { sessionId: 'order-7', fromStep: 3, keptSteps: [] },
  ],
  LOUSHO_CHECKPOINT_TOO_LARGE: [{ id: 'order-7', bytes: 31_457_280, maxBytes: 26_214_400 }],
  LOUSHO_APPROVAL_NOT_FOUND: [{ approvalId: FIRST }],
  LOUSHO_APPROVAL_DECIDED: [
    { approvalId: FIRST, approved: true, by: 'ann', decidedAt: '2024-05-01T12:00:00.000Z' },
    { approvalId: FIRST, approved: false, decidedAt: '2024-05-01T12:00:00.000Z' },
  ],
  LOUSHO_APPROVAL_ORPHANED: [{ approvalId: FIRST, sessionId: 'order-7' }, { approvalId: FIRST }],
  LOUSHO_TOOL_ARGS_INVALID: [
    {
      toolName: 'pay',
      approvalId: FIRST,
      issues: [
        { path: 'items[0].cents', message: 'expected a number' },
        { path: '', message: 'expected an object' },
      ],
    },
  ],
  LOUSHO_TOOL_PROPAGATED: [{ toolName: 'pay', toolCallId: 'c' }, {}],
  LOUSHO_AGENT_DRIFT: [
    {
      sessionId: 'order-7',
      drift: {
        model: { saved: 'large', current: 'small' },
        toolsAdded: ['look_up'],
        toolsRemoved: ['search'],
        toolsChanged: ['pay'],
        instructions: true,
        subagent: 'mailer',
      },
    },
    { drift: { model: {}, toolsAdded: [], toolsRemoved: [], toolsChanged: [], instructions: false } },
  ],
  LOUSHO_RESUME_TOOL_MISSING: [
    { sessionId: 'order-7', toolName: 'pay', toolCallId: 'c' },
    { toolName: 'pay', toolCallId: 'c' },
    { toolName: 'pay', toolCallId: 'c', subagent: 'cashier' },
    { toolName: 'handoff_to_billing', toolCallId: 'c', activeAgent: 'billing' },
  ],
  LOUSHO_RECOVERY_EXHAUSTED: [
    { sessionId: 'order-7', starts: 10, lastError },
    { sessionId: 'order-7', starts: 10 },
  ],
  LOUSHO_SHUTDOWN: [{ sessionId: 'order-7' }, {}],
  LOUSHO_RUN_ALREADY_ITERATED: [{ runId: 'r' }, {}],
  LOUSHO_CONFIG_INVALID: [
    { option: 'maxSteps', got: -1, want: '1 or more' },
    { option: 'maxSteps', want: '1 or more' },
    { option: 'store', got: {}, want: 'a store' },
    { option: 'store', got: [], want: 'a store' },
    { option: 'store', got: null, want: 'a store' },
    { option: 'store', got: 'x'.repeat(1_000), want: 'a store' },
    { option: 'store', got: 1n, want: 'a store' },
    { option: 'store', got: () => 1, want: 'a store' },
    { option: 'store', got: Symbol('x'), want: 'a store' },
  ],
  LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE: [{ operation: 'pending()' }],
  LOUSHO_CONFIG_MISSING_APPROVAL_STORE: [{ toolName: 'pay' }, {}],
  LOUSHO_CONFIG_RESOLVER_FAILED: [{ option: 'model' }],
  LOUSHO_STORE_VERSION_UNSUPPORTED: [{ found: 2, supported: 1 }],
  LOUSHO_STORE_READ_FAILED: [{ operation: 'load', id: 'order-7' }, { operation: 'list' }],
  LOUSHO_STORE_WRITE_FAILED: [{ operation: 'save', id: 'order-7' }, { operation: 'prune' }],
  LOUSHO_STORE_REPLACED: [{ path: './agent.db' }],
  LOUSHO_STORE_KEY_UNKNOWN: [{ id: 'order-7', record: 'checkpoint', keyId: '2026-01' }],
  LOUSHO_STORE_NOT_SEALED: [{ id: 'order-7', record: 'checkpoint' }],
  LOUSHO_EXPORT_DAMAGED: [{ line: 17, reason: 'its checksum does not fit' }],
  LOUSHO_STORE_CLOSED: [{ operation: 'save' }],
  LOUSHO_PROVIDER_ERROR: [
    { kind: 'api', retryable: true, status: 529, retryAfterMs: 100, providerCode: 'overloaded' },
    { kind: 'network', retryable: true },
  ],
  LOUSHO_REMOTE_FAILED: [
    { agent: 'researcher', reason: 'refused the task', status: 403, remoteCode: 'FORBIDDEN' },
    { agent: 'researcher', reason: 'could not be reached' },
  ],
  LOUSHO_SCHEDULE_INVALID: [{ scheduleId: 'daily-report', reason: 'the expression has four fields' }],
  LOUSHO_SCHEDULE_RUN_INCOMPLETE: [
    {
      scheduleId: 'daily-report',
      sessionId: 'order-7',
      finishReason: 'awaiting-approval',
      approvalId: FIRST,
    },
    { scheduleId: 'daily-report', sessionId: 'order-7', finishReason: 'max-steps' },
  ],
  LOUSHO_MOCK_EXHAUSTED: [{ calls: 3 }],
};
