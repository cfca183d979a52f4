/** Details for every code, once with all that is optional and once without. The type makes it complete. */
import type { ErrorCode, ErrorDetails } from '../../src/index.ts';

const lastError = { name: 'Error', message: 'overloaded', retryable: true };

export const errorSamples: { readonly [C in ErrorCode]: readonly [ErrorDetails[C], ...ErrorDetails[C][]] } = {
  LOUSHO_SESSION_BUSY: [{ sessionId: 'a', leaseFreeAtMs: 5 }, { sessionId: 'a' }],
  LOUSHO_SESSION_AWAITING_APPROVAL: [
    { sessionId: 'a', approvalId: 'x', approvalIds: ['x', 'y'], approvalKind: 'tool' },
  ],
  LOUSHO_SESSION_TURN_FAILED: [{ sessionId: 'a', lastError }],
  LOUSHO_SESSION_ID_INVALID: [{ sessionId: '', rule: 'a run id is a text' }],
  LOUSHO_SESSION_EXISTS: [{ sessionId: 'a' }],
  LOUSHO_INPUT_EMPTY: [{ sessionId: 'a' }, {}],
  LOUSHO_CHECKPOINT_CORRUPT: [
    { id: 'a', record: 'checkpoint' },
    { id: 'a', record: 'session' },
    { id: 'a', record: 'history' },
    { id: 'a', record: 'approval' },
  ],
  LOUSHO_CHECKPOINT_NOT_FOUND: [
    { sessionId: 'a', fromStep: 3, keptSteps: [1, 2] },
    { sessionId: 'a', fromStep: 3, keptSteps: [] },
  ],
  LOUSHO_CHECKPOINT_TOO_LARGE: [{ id: 'a', bytes: 2, maxBytes: 1 }],
  LOUSHO_APPROVAL_NOT_FOUND: [{ approvalId: 'x' }],
  LOUSHO_APPROVAL_DECIDED: [
    { approvalId: 'x', approved: true, by: 'ann', decidedAt: '2024-05-01T12:00:00.000Z' },
    { approvalId: 'x', approved: false, decidedAt: '2024-05-01T12:00:00.000Z' },
  ],
  LOUSHO_APPROVAL_ORPHANED: [{ approvalId: 'x', sessionId: 'a' }, { approvalId: 'x' }],
  LOUSHO_TOOL_ARGS_INVALID: [
    {
      toolName: 'pay',
      approvalId: 'x',
      issues: [
        { path: 'items[0].cents', message: 'expected a number' },
        { path: '', message: 'expected an object' },
      ],
    },
  ],
  LOUSHO_TOOL_PROPAGATED: [{ toolName: 'pay', toolCallId: 'c' }, {}],
  LOUSHO_AGENT_DRIFT: [
    {
      sessionId: 'a',
      drift: {
        model: { saved: 'm', current: 'n' },
        toolsAdded: ['a'],
        toolsRemoved: ['b'],
        toolsChanged: ['c'],
        instructions: true,
        subagent: 'mailer',
      },
    },
    { drift: { model: {}, toolsAdded: [], toolsRemoved: [], toolsChanged: [], instructions: false } },
  ],
  LOUSHO_RESUME_TOOL_MISSING: [
    { sessionId: 'a', toolName: 'pay', toolCallId: 'c' },
    { toolName: 'pay', toolCallId: 'c' },
  ],
  LOUSHO_RECOVERY_EXHAUSTED: [
    { sessionId: 'a', starts: 10, lastError },
    { sessionId: 'a', starts: 10 },
  ],
  LOUSHO_SHUTDOWN: [{ sessionId: 'a' }, {}],
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
  LOUSHO_STORE_READ_FAILED: [{ operation: 'load', id: 'a' }, { operation: 'list' }],
  LOUSHO_STORE_WRITE_FAILED: [{ operation: 'save', id: 'a' }, { operation: 'prune' }],
  LOUSHO_STORE_REPLACED: [{ path: './agent.db' }],
  LOUSHO_STORE_CLOSED: [{ operation: 'save' }],
  LOUSHO_PROVIDER_ERROR: [
    { kind: 'api', retryable: true, status: 529, retryAfterMs: 100, providerCode: 'overloaded' },
    { kind: 'network', retryable: true },
  ],
  LOUSHO_SCHEDULE_INVALID: [{ scheduleId: 's', reason: 'the expression has four fields' }],
  LOUSHO_SCHEDULE_RUN_INCOMPLETE: [
    { scheduleId: 's', sessionId: 'a', finishReason: 'awaiting-approval', approvalId: 'x' },
    { scheduleId: 's', sessionId: 'a', finishReason: 'max-steps' },
  ],
  LOUSHO_MOCK_EXHAUSTED: [{ calls: 3 }],
};
