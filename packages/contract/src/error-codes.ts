/** Every error code: what it carries, what it says, what to do next. Types, pages and the retry policy come from here. */
import type { AgentDrift } from './events.ts';
import type { ApprovalKind } from './checkpoint.ts';
import type { FinishReason, StoredError } from './run.ts';

/** Every code and its details. Retryable unless marked "final". Codes are frozen within a major. */
export interface ErrorDetails {
  /**
   * Another owner executes this id, or this run lost its lease. Nothing ran, but with `executed`: the turn of a session ran, and another
   * process wrote the conversation meanwhile; what it did stands behind theirs.
   */
  LOUSHO_SESSION_BUSY: {
    readonly sessionId: string;
    readonly leaseFreeAtMs?: number;
    readonly executed?: true;
  };
  /** The run waits for a person. Final. */
  LOUSHO_SESSION_AWAITING_APPROVAL: {
    readonly sessionId: string;
    readonly approvalId: string;
    readonly approvalIds: readonly string[];
    readonly approvalKind: ApprovalKind;
  };
  /** The session's unfinished turn would fail the same way: resume or discard it first. Final. */
  LOUSHO_SESSION_TURN_FAILED: { readonly sessionId: string; readonly lastError: StoredError };
  /** The id is malformed or reserved. Final. */
  LOUSHO_SESSION_ID_INVALID: { readonly sessionId: string; readonly rule: string };
  /** A fork's new id is taken. Final. */
  LOUSHO_SESSION_EXISTS: { readonly sessionId: string };
  /** Nothing to say on an id that has no run. Final. */
  LOUSHO_INPUT_EMPTY: { readonly sessionId?: string };

  /** A stored record is damaged. Final. */
  LOUSHO_CHECKPOINT_CORRUPT: {
    readonly id: string;
    readonly record: 'checkpoint' | 'history' | 'session' | 'approval';
  };
  /** The history does not hold this step. Final. */
  LOUSHO_CHECKPOINT_NOT_FOUND: {
    readonly sessionId: string;
    readonly fromStep: number;
    readonly keptSteps: readonly number[];
  };
  /** Over what the store can hold in one record. Final. */
  LOUSHO_CHECKPOINT_TOO_LARGE: { readonly id: string; readonly bytes: number; readonly maxBytes: number };

  /** The id never was an approval's. Final. */
  LOUSHO_APPROVAL_NOT_FOUND: { readonly approvalId: string };
  /** Somebody decided it before. Final. */
  LOUSHO_APPROVAL_DECIDED: {
    readonly approvalId: string;
    readonly approved: boolean;
    readonly by?: string;
    readonly decidedAt: string;
  };
  /** Its run is gone or moved on. Final. */
  LOUSHO_APPROVAL_ORPHANED: { readonly approvalId: string; readonly sessionId?: string };
  /** Changed arguments do not fit the tool's schema; the approval is still pending. Final. */
  LOUSHO_TOOL_ARGS_INVALID: {
    readonly toolName: string;
    readonly approvalId: string;
    readonly issues: readonly { readonly path: string; readonly message: string }[];
  };
  /** A tool rejected the run. */
  LOUSHO_TOOL_PROPAGATED: { readonly toolName?: string; readonly toolCallId?: string };

  /** The resuming agent differs from the saved one, and `onAgentDrift` is `'error'`. Nothing changed. Final. */
  LOUSHO_AGENT_DRIFT: { readonly sessionId?: string; readonly drift: AgentDrift };
  /** A call without a result needs a tool (or a sub-agent) that is not there. Nothing changed. Final. */
  LOUSHO_RESUME_TOOL_MISSING: {
    readonly sessionId?: string;
    readonly toolName: string;
    readonly toolCallId: string;
    /** Whose call it is, or (with the tool `task`) who is missing. Absent: it is the agent's own. */
    readonly subagent?: string;
    /** The run was handed over to this agent, which is not there; the call is the one that did it. */
    readonly activeAgent?: string;
  };
  /** `recover()` gave up on a run that makes no progress. Reported to `onError`, never thrown. Final. */
  LOUSHO_RECOVERY_EXHAUSTED: {
    readonly sessionId: string;
    readonly starts: number;
    readonly lastError?: StoredError;
  };
  /** The agent is shutting down. The run stays as it is and can be resumed at once. */
  LOUSHO_SHUTDOWN: { readonly sessionId?: string };
  /** A second loop over one `AgentRun`. Final. */
  LOUSHO_RUN_ALREADY_ITERATED: { readonly runId?: string };

  /** Final. */
  LOUSHO_CONFIG_INVALID: { readonly option: string; readonly got?: unknown; readonly want: string };
  /** Final. */
  LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE: { readonly operation: string };
  /** Final. */
  LOUSHO_CONFIG_MISSING_APPROVAL_STORE: { readonly toolName?: string };
  /** A dynamic agent's function threw; the run never started. */
  LOUSHO_CONFIG_RESOLVER_FAILED: { readonly option: 'model' | 'instructions' | 'tools' };

  /** Written by a newer release; left as it was. Final. */
  LOUSHO_STORE_VERSION_UNSUPPORTED: { readonly found: number; readonly supported: number };
  LOUSHO_STORE_READ_FAILED: { readonly operation: string; readonly id?: string };
  LOUSHO_STORE_WRITE_FAILED: { readonly operation: string; readonly id?: string };
  /** The file under an open store was deleted or replaced. Final. */
  LOUSHO_STORE_REPLACED: { readonly path: string };
  /** A value was sealed with a key that the store was not given. Final. */
  LOUSHO_STORE_KEY_UNKNOWN: {
    readonly id: string;
    readonly record: 'checkpoint' | 'history' | 'session' | 'approval';
    readonly keyId: string;
  };
  /** An encrypted store found a value that is not sealed. Final. */
  LOUSHO_STORE_NOT_SEALED: {
    readonly id: string;
    readonly record: 'checkpoint' | 'history' | 'session' | 'approval';
  };
  /** A line of an export is not what was written, or is missing. What stands before it is whole. Final. */
  LOUSHO_EXPORT_DAMAGED: { readonly line: number; readonly reason: string };
  /** Final. */
  LOUSHO_STORE_CLOSED: { readonly operation: string };

  /** The model call failed; retryable as the provider says. */
  LOUSHO_PROVIDER_ERROR: LLMErrorDetails;

  /** A remote sub-agent gave no answer that can be used, however often it was asked. The lead's model reads it as the result of the task. */
  LOUSHO_REMOTE_FAILED: {
    readonly agent: string;
    /** What it did, behind its name. */
    readonly reason: string;
    /** HTTP status. */
    readonly status?: number;
    readonly remoteCode?: string;
  };

  /** Final. */
  LOUSHO_SCHEDULE_INVALID: { readonly scheduleId: string; readonly reason: string };
  /** A fired run did not finish. Reported to `onError`. */
  LOUSHO_SCHEDULE_RUN_INCOMPLETE: {
    readonly scheduleId: string;
    readonly sessionId: string;
    readonly finishReason: FinishReason;
    readonly approvalId?: string;
  };

  /** `mockModel` was asked for more than its script holds. Final. */
  LOUSHO_MOCK_EXHAUSTED: { readonly calls: number };
}
export type ErrorCode = keyof ErrorDetails;
export interface LLMErrorDetails {
  readonly kind:
    'api' | 'network' | 'stream-interrupted' | 'invalid-response' | 'unsupported' | 'config' | 'unknown';
  readonly retryable: boolean;
  /** HTTP status. */
  readonly status?: number;
  readonly retryAfterMs?: number;
  readonly providerCode?: string;
}

interface ErrorEntry<Details> {
  /** Whether the same call may succeed later without a change of code, data or set-up. */
  readonly retryable: boolean;
  message(details: Details): string;
  hint?(details: Details): string;
}

export const errorTable: { readonly [C in ErrorCode]: ErrorEntry<ErrorDetails[C]> } = {
  LOUSHO_SESSION_BUSY: {
    retryable: true,
    message: (d) =>
      d.executed === true
        ? `The turn ran, but another process wrote session "${d.sessionId}" meanwhile. What the turn did stands behind theirs.`
        : `Run "${d.sessionId}" is executing elsewhere.`,
    hint: (d) =>
      d.executed === true
        ? 'Do not send it again: read session.messages() first. A store with atomic leases keeps two processes apart.'
        : 'Wait until it ends; if its process died, its lease frees the run within 60 seconds. Then call again.',
  },
  LOUSHO_SESSION_AWAITING_APPROVAL: {
    retryable: false,
    message: (d) => `Run "${d.sessionId}" waits for a decision on ${d.approvalIds.join(', ')}.`,
    hint: () =>
      'Decide with agent.approvals.resolve({ id, approved }) first; agent.approvals.list() shows the calls.',
  },
  LOUSHO_SESSION_TURN_FAILED: {
    retryable: false,
    message: (d) =>
      `The unfinished turn of session "${d.sessionId}" failed and would fail the same way: ${d.lastError.message}`,
    hint: () => 'Fix the cause and call session.resume(), or drop the turn with session.discardPending().',
  },
  LOUSHO_SESSION_ID_INVALID: {
    retryable: false,
    message: (d) => `The id "${shorten(d.sessionId)}" cannot be used: ${d.rule}.`,
    hint: () => 'Choose another id, for example one made from your own order or chat number.',
  },
  LOUSHO_SESSION_EXISTS: {
    retryable: false,
    message: (d) => `"${d.sessionId}" has a run already.`,
    hint: () => 'Leave out newSessionId to get the next free id.',
  },
  LOUSHO_INPUT_EMPTY: {
    retryable: false,
    message: (d) =>
      d.sessionId === undefined
        ? 'There is no input.'
        : `There is no input, and no run "${d.sessionId}" to continue.`,
    hint: () => 'Give at least one message; an empty list only continues a run that exists.',
  },
  LOUSHO_CHECKPOINT_CORRUPT: {
    retryable: false,
    message: (d) => `The stored ${d.record} "${d.id}" is damaged.`,
    hint: (d) =>
      d.record === 'session'
        ? 'Restore it from a backup, or drop it with store.sessions.delete(id).'
        : 'Restore it from a backup, or drop it with store.checkpoints.delete(id).',
  },
  LOUSHO_CHECKPOINT_NOT_FOUND: {
    retryable: false,
    message: (d) =>
      `The history of "${d.sessionId}" does not hold step ${d.fromStep}. Kept steps: ${d.keptSteps.length === 0 ? 'none' : d.keptSteps.join(', ')}.`,
    hint: () => 'Use one of the kept steps, or raise historyLimit for later runs.',
  },
  LOUSHO_CHECKPOINT_TOO_LARGE: {
    retryable: false,
    message: (d) =>
      `The checkpoint of "${d.id}" has ${d.bytes} bytes; this store holds at most ${d.maxBytes} in one record.`,
    hint: () =>
      'Return less from tools (a reference instead of the content), or use a store that holds more.',
  },
  LOUSHO_APPROVAL_NOT_FOUND: {
    retryable: false,
    message: (d) => `There is no approval "${shorten(d.approvalId)}".`,
    hint: () => 'agent.approvals.list() shows what waits.',
  },
  LOUSHO_APPROVAL_DECIDED: {
    retryable: false,
    message: (d) =>
      `Approval "${d.approvalId}" was ${d.approved ? 'approved' : 'rejected'}${d.by === undefined ? '' : ` by ${d.by}`} at ${d.decidedAt}. This decision changed nothing.`,
  },
  LOUSHO_APPROVAL_ORPHANED: {
    retryable: false,
    message: (d) =>
      `The run behind approval "${d.approvalId}" is gone or moved on; nothing waits for this decision.`,
    hint: () => 'Nothing ran. agent.approvals.list() shows what waits now.',
  },
  LOUSHO_TOOL_ARGS_INVALID: {
    retryable: false,
    message: (d) => `The changed arguments do not fit the tool "${d.toolName}": ${issueText(d.issues)}`,
    hint: () => 'The approval is still pending: decide again with arguments that fit.',
  },
  LOUSHO_TOOL_PROPAGATED: {
    retryable: true,
    message: (d) => `The tool${d.toolName === undefined ? '' : ` "${d.toolName}"`} rejected the run.`,
  },
  LOUSHO_AGENT_DRIFT: {
    retryable: false,
    message: (d) =>
      `The agent that resumes ${d.sessionId === undefined ? 'this run' : `"${d.sessionId}"`} is not the one that began it: ${driftText(d.drift)}. Nothing was changed.`,
    hint: () =>
      "Resume with the agent that began it, or set onAgentDrift to 'warn' to continue with this one.",
  },
  LOUSHO_RESUME_TOOL_MISSING: {
    retryable: false,
    message: (d) =>
      d.activeAgent !== undefined
        ? `The run was handed over to "${d.activeAgent}" (call "${d.toolCallId}"), which this agent does not have among its handoffs. Nothing was changed.`
        : `The open call "${d.toolCallId}" needs the tool "${d.toolName}"${d.subagent === undefined ? ', which this agent' : ` with the sub-agent "${d.subagent}", which this agent`} does not have. Nothing was changed.`,
    hint: (d) =>
      d.activeAgent === undefined
        ? 'Give the tool back to the agent, or reject the call if it waits for a decision.'
        : `Give "${d.activeAgent}" back to the handoffs of the agent.`,
  },
  LOUSHO_RECOVERY_EXHAUSTED: {
    retryable: false,
    message: (d) =>
      `Run "${d.sessionId}" was started ${d.starts} times without progress${d.lastError === undefined ? '' : ` (${d.lastError.message})`}; recovery leaves it alone.`,
    hint: () => 'Fix the cause, then call agent.resume(id).',
  },
  LOUSHO_SHUTDOWN: {
    retryable: true,
    message: () => 'The agent is shutting down.',
    hint: () => 'The run is stored as it was and another process can resume it at once.',
  },
  LOUSHO_RUN_ALREADY_ITERATED: {
    retryable: false,
    message: () => 'The events of this run are being read by another loop.',
    hint: () => 'Read them once and pass them on, or use run.result and run.textStream.',
  },
  LOUSHO_CONFIG_INVALID: {
    retryable: false,
    message: (d) => `The option "${d.option}" must be ${d.want}${'got' in d ? `; got ${show(d.got)}` : ''}.`,
  },
  LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE: {
    retryable: false,
    message: (d) => `${d.operation} needs a checkpoint store.`,
    hint: () =>
      'Give createAgent a store, for example new SqliteStore("./agent.db") of @lousho/store-sqlite.',
  },
  LOUSHO_CONFIG_MISSING_APPROVAL_STORE: {
    retryable: false,
    message: (d) =>
      `${d.toolName === undefined ? 'This' : `The call of "${d.toolName}" needs approval, which`} needs an approval store.`,
    hint: () => 'Give the agent a store that has an approvals part.',
  },
  LOUSHO_CONFIG_RESOLVER_FAILED: {
    retryable: true,
    message: (d) => `The function given as "${d.option}" failed; the run did not start.`,
  },
  LOUSHO_STORE_VERSION_UNSUPPORTED: {
    retryable: false,
    message: (d) =>
      `The stored data has version ${d.found}; this release knows versions up to ${d.supported}. It was left as it is.`,
    hint: () => 'Upgrade the packages, or restore a backup made by this release.',
  },
  LOUSHO_STORE_READ_FAILED: {
    retryable: true,
    message: (d) => `The store could not be read (${where(d)}).`,
    hint: () => 'The cause says why; stored data was not changed.',
  },
  LOUSHO_STORE_WRITE_FAILED: {
    retryable: true,
    message: (d) => `The store could not be written (${where(d)}).`,
    hint: () =>
      'The cause says why; what was stored before is intact. Resume the run when the store works again.',
  },
  LOUSHO_STORE_REPLACED: {
    retryable: false,
    message: (d) => `The file "${d.path}" was deleted or replaced while the store had it open.`,
    hint: () => 'Open a new store on the path; never replace the file under a running process.',
  },
  LOUSHO_STORE_KEY_UNKNOWN: {
    retryable: false,
    message: (d) =>
      `The stored ${d.record} "${d.id}" was sealed with the key "${d.keyId}", which is not here.`,
    hint: () =>
      'Add this key to those of encryptedStore(store, keys): the first key seals, all of them open.',
  },
  LOUSHO_STORE_NOT_SEALED: {
    retryable: false,
    message: (d) => `The stored ${d.record} "${d.id}" is not sealed.`,
    hint: () =>
      'Copy what was stored before the encryption with copyStore(store, encryptedStore(newStore, keys)); if nothing was, somebody else wrote this record.',
  },
  LOUSHO_EXPORT_DAMAGED: {
    retryable: false,
    message: (d) => `The export is damaged at line ${d.line}: ${d.reason}.`,
    hint: () =>
      'Export again. Nothing was overwritten; of an export that was checked while it came, what stands before that line was imported.',
  },
  LOUSHO_STORE_CLOSED: {
    retryable: false,
    message: (d) => `The store is closed (${d.operation}).`,
    hint: () => 'Close the store after the last run has ended, for example after agent.shutdown().',
  },
  LOUSHO_PROVIDER_ERROR: {
    retryable: true,
    message: (d) =>
      `The model call failed (${d.kind}${d.status === undefined ? '' : `, status ${d.status}`}).`,
  },
  LOUSHO_REMOTE_FAILED: {
    retryable: true,
    message: (d) => `The remote agent "${d.agent}" ${d.reason}${said(d.status, d.remoteCode)}.`,
    hint: () => 'Look at the remote agent: what it had done is stored there, and nothing was started twice.',
  },
  LOUSHO_SCHEDULE_INVALID: {
    retryable: false,
    message: (d) => `The schedule "${d.scheduleId}" is invalid: ${d.reason}.`,
  },
  LOUSHO_SCHEDULE_RUN_INCOMPLETE: {
    retryable: true,
    message: (d) =>
      `The run "${d.sessionId}" of schedule "${d.scheduleId}" did not finish (${d.finishReason})${d.approvalId === undefined ? '' : `; it waits for ${d.approvalId}`}.`,
  },
  LOUSHO_MOCK_EXHAUSTED: {
    retryable: false,
    message: (d) => `mockModel was called ${d.calls} times, which is more than its script holds.`,
    hint: () => 'Add responses to the script, or look why the agent asks again.',
  },
};

function where(details: { readonly operation: string; readonly id?: string }): string {
  return details.id === undefined ? details.operation : `${details.operation} "${details.id}"`;
}

function issueText(issues: readonly { readonly path: string; readonly message: string }[]): string {
  return issues
    .map((issue) => (issue.path === '' ? issue.message : `${issue.path}: ${issue.message}`))
    .join('; ');
}

function driftText(drift: AgentDrift): string {
  const parts = [
    ...(drift.model === undefined
      ? []
      : [`model ${drift.model.saved ?? 'unset'} is now ${drift.model.current ?? 'unset'}`]),
    ...drift.toolsAdded.map((name) => `tool ${name} added`),
    ...drift.toolsRemoved.map((name) => `tool ${name} removed`),
    ...drift.toolsChanged.map((name) => `input of tool ${name} changed`),
    ...(drift.instructions ? ['instructions changed'] : []),
  ];
  return `${drift.subagent === undefined ? '' : `sub-agent ${drift.subagent}: `}${parts.join(', ')}`;
}

function said(status: number | undefined, code: string | undefined): string {
  const parts = [status === undefined ? [] : [`status ${status}`], code === undefined ? [] : [code]].flat();
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function shorten(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(shorten(value));
  if (typeof value === 'number' || typeof value === 'boolean' || value === null || value === undefined)
    return String(value);
  if (typeof value === 'object') return Array.isArray(value) ? 'a list' : 'an object';
  return `a ${typeof value}`;
}
