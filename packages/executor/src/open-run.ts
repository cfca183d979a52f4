/** Stored checkpoint + what the caller wants → how the run opens. A decision table; nothing is done here. */
import {
  ConfigurationError,
  SDKError,
  SessionAwaitingApprovalError,
  type Checkpoint,
  type CheckpointApproval,
  type InProgressCheckpoint,
  type Message,
} from '@lousho/contract';
import { newMessages } from './accept-input.ts';
import { isOver, type ConversationState } from './conversation.ts';
import { findApproval } from './decide-approval.ts';

/** What a caller asks of a run. */
export type RunRequest =
  | { readonly type: 'send'; readonly messages: readonly Message[]; readonly inputId?: string | undefined }
  /** Whatever is stored counts as this input's: start it, finish it, or give what it came to. */
  | { readonly type: 'once'; readonly messages: readonly Message[]; readonly inputId?: string | undefined }
  /** Continue what is unfinished, with nothing new. */
  | { readonly type: 'resume' }
  /** `resume` by nobody's wish: only what is still due when the lease is held; a run that is not is left without a word. */
  | {
      readonly type: 'recover';
      readonly isDue: (stored: InProgressCheckpoint) => boolean;
      /** Starts that do not count: the store failed, not the run. */
      readonly forgivenStarts: number;
      /** What came of it is stored: it was not in vain. Told more than once. */
      readonly onProgress: () => void;
    }
  | { readonly type: 'decide'; readonly approvalId: string }
  /** The run of a sub-agent: started, finished, or given as it is. `decided`: what people said of calls inside of it. */
  | {
      readonly type: 'task';
      readonly messages: readonly Message[];
      readonly decided: readonly CheckpointApproval[];
      /** What was said before, in the task that it goes on with. */
      readonly before: ConversationState | undefined;
    };

export type Opening =
  | { readonly type: 'new' }
  /** What was said before, by a finished run or in a session: the conversation goes on with a run of its own. */
  | { readonly type: 'continue'; readonly before: ConversationState; readonly messages: readonly Message[] }
  | { readonly type: 'resume'; readonly stored: InProgressCheckpoint; readonly messages: readonly Message[] }
  | { readonly type: 'decide'; readonly stored: Checkpoint; readonly approval: CheckpointApproval }
  /** Decisions that were made with the lead reach the sub-agent. */
  | {
      readonly type: 'handed-down';
      readonly stored: Checkpoint;
      readonly decided: readonly CheckpointApproval[];
    }
  /** Nothing to do: the stored run is the answer. */
  | { readonly type: 'stored'; readonly stored: RestingCheckpoint }
  | { readonly type: 'nothing' }
  /** A turn that is over and not yet recorded in its conversation. */
  | { readonly type: 'adopt'; readonly stored: Checkpoint }
  | { readonly type: 'refuse'; readonly error: SDKError };

/** A run that nothing executes on: it is over, or waits for a person. */
export type RestingCheckpoint = Exclude<Checkpoint, { readonly status: 'in-progress' }>;

/** Openings that execute something. */
export type ExecutableOpening = Exclude<Opening, { type: 'stored' | 'nothing' | 'adopt' | 'refuse' }>;

/** @param conversation of a run that is a turn of one */
export function openRun(
  id: string,
  stored: Checkpoint | null,
  request: RunRequest,
  conversation?: ConversationState,
): Opening {
  if (conversation !== undefined && stored !== null && request.type !== 'decide' && isOver(stored))
    return { type: 'adopt', stored };
  switch (request.type) {
    case 'send':
      return conversation === undefined
        ? openSend(id, stored, request)
        : openTurn(id, stored, request, conversation);
    case 'once':
      return openOnce(id, stored, request.messages);
    case 'resume':
      return openResume(id, stored);
    case 'recover':
      return stored?.status === 'in-progress' && request.isDue(stored)
        ? { type: 'resume', stored, messages: [] }
        : { type: 'nothing' };
    case 'decide':
      return openDecision(stored, request.approvalId);
    case 'task':
      return openTask(stored, request);
  }
}

function openSend(
  id: string,
  stored: Checkpoint | null,
  request: Extract<RunRequest, { type: 'send' }>,
): Opening {
  if (stored === null) return openNew(id, request.messages);
  if (stored.status === 'awaiting-approval') return refuse(awaitingApproval(id, stored));
  const messages = newMessages(stored, request.messages, request.inputId);
  if (stored.status === 'in-progress') return { type: 'resume', stored, messages };
  return messages.length === 0 ? { type: 'stored', stored } : { type: 'continue', before: stored, messages };
}

/** A turn takes one input: what is new to an unfinished one gets a turn of its own behind it. */
function openTurn(
  id: string,
  stored: Checkpoint | null,
  request: Extract<RunRequest, { type: 'send' }>,
  conversation: ConversationState,
): Opening {
  if (stored?.status === 'awaiting-approval') return refuse(awaitingApproval(id, stored));
  if (stored?.status === 'in-progress') {
    const isNew = newMessages(stored, request.messages, request.inputId).length > 0;
    return isNew ? { type: 'nothing' } : { type: 'resume', stored, messages: [] };
  }
  const opening = openNew(id, request.messages);
  return opening.type === 'new'
    ? { type: 'continue', before: conversation, messages: request.messages }
    : opening;
}

function openOnce(id: string, stored: Checkpoint | null, messages: readonly Message[]): Opening {
  if (stored === null) return openNew(id, messages);
  return stored.status === 'in-progress'
    ? { type: 'resume', stored, messages: [] }
    : { type: 'stored', stored };
}

function openTask(stored: Checkpoint | null, request: Extract<RunRequest, { type: 'task' }>): Opening {
  const { messages, before } = request;
  if (stored === null) return before === undefined ? { type: 'new' } : { type: 'continue', before, messages };
  if (stored.status === 'finished') return { type: 'stored', stored };
  const decided = request.decided.filter(({ id }) =>
    stored.approvals.some((approval) => approval.id === id && approval.decision === undefined),
  );
  if (decided.length > 0) return { type: 'handed-down', stored, decided };
  return stored.status === 'in-progress'
    ? { type: 'resume', stored, messages: [] }
    : { type: 'stored', stored };
}

function openNew(id: string, messages: readonly Message[]): Opening {
  const hasWords = messages.some(({ role }) => role !== 'system');
  return hasWords ? { type: 'new' } : refuse(new ConfigurationError('LOUSHO_INPUT_EMPTY', { sessionId: id }));
}

function openResume(id: string, stored: Checkpoint | null): Opening {
  if (stored === null || stored.status === 'finished') return { type: 'nothing' };
  if (stored.status === 'awaiting-approval') return refuse(awaitingApproval(id, stored));
  return { type: 'resume', stored, messages: [] };
}

function openDecision(stored: Checkpoint | null, approvalId: string): Opening {
  const found = findApproval(stored, approvalId);
  return found.type === 'open'
    ? { type: 'decide', stored: found.checkpoint, approval: found.approval }
    : refuse(found.error);
}

/** What every way into a paused run is refused with. */
export function awaitingApproval(
  id: string,
  stored: Extract<Checkpoint, { status: 'awaiting-approval' }>,
): SDKError {
  const { approvalId, approvalIds, approvals } = stored;
  const approvalKind = approvals.find((approval) => approval.id === approvalId)?.kind ?? 'tool';
  return new SessionAwaitingApprovalError({ sessionId: id, approvalId, approvalIds, approvalKind });
}

function refuse(error: SDKError): Opening {
  return { type: 'refuse', error };
}
