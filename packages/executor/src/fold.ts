/** Pure: checkpoint + outcome → checkpoint. The only place that makes one from another; its status follows from its content. */
import {
  addModelCall,
  addRun,
  appendFrozen,
  assertNever,
  freezeFresh,
  emptyUsage,
  ownCalls,
  type AgentFingerprint,
  type AssistantMessage,
  type Checkpoint,
  type DelegatedInFlight,
  type DelegatedUsage,
  type FinishedCheckpoint,
  type InProgressCheckpoint,
  type JsonValue,
  type Message,
  type ModelFinishReason,
  type ModelUsage,
  type ReachedLimit,
  type RunConfig,
  type RunEnd,
  type StoredBackgroundTask,
  type StoredError,
  type ToolResultPart,
} from '@lousho/contract';
import {
  begunAgain,
  begunOnceLess,
  content,
  failedAgain,
  inProgress,
  keepFailure,
  withStatus,
} from './checkpoint-status.ts';
import { refreshedMessages } from './instructions.ts';
import { turnSpend } from './next-action.ts';
import { none, withInputId } from './start-run.ts';
import { openTasks, withTasks } from './task-ledger.ts';
import { decide, pause, type Decided, type Paused } from './record-approvals.ts';
import { placeResults, recordResults, withChild, type RecordedResults } from './record-results.ts';

/** What performing an action gave. */
export type Outcome =
  /** Input for this run: held back until it joins. */
  | {
      readonly type: 'input';
      readonly messages: readonly Message[];
      readonly inputId?: string | undefined;
    }
  | { readonly type: 'inputJoined' }
  | {
      readonly type: 'modelResponse';
      readonly message: AssistantMessage;
      readonly finishReason: ModelFinishReason;
      readonly modelId: string;
      readonly usage: ModelUsage;
      /** Of calls that can never run: unknown tools, arguments that are no JSON. */
      readonly results: readonly ToolResultPart[];
    }
  /** A model call whose response nobody gets: the run was steered or aborted during it. */
  | {
      readonly type: 'modelDropped';
      readonly modelId: string;
      readonly usage: ModelUsage;
      readonly countsAsStep: boolean;
    }
  /** The next answer of a remote agent: its end, or calls that wait for a person there. */
  | {
      readonly type: 'remoteAnswer';
      readonly message: AssistantMessage;
      readonly end?: Pick<FinishedCheckpoint, 'finishReason' | 'limit'> | undefined;
      readonly usage: DelegatedUsage;
    }
  /** A remote agent was stopped: there is no answer, and it has spent this. */
  | { readonly type: 'remoteStopped'; readonly usage: DelegatedUsage }
  /** These calls are about to begin and must not begin twice unseen. */
  | { readonly type: 'callsStarted'; readonly toolCallIds: readonly string[] }
  /** `takeover`: one of them is a handoff that took place. */
  | ({ readonly type: 'results'; readonly takeover?: TakeoverFacts | undefined } & RecordedResults)
  | { readonly type: 'childSpent'; readonly child: DelegatedInFlight }
  /** It began, or came to rest. */
  | { readonly type: 'taskMoved'; readonly task: StoredBackgroundTask }
  | ({ readonly type: 'paused' } & Paused)
  | ({ readonly type: 'decided' } & Decided)
  /** An execution begins on a run that was there before; counted until there is progress, without those that are `forgiven`. */
  | { readonly type: 'began'; readonly forgiven?: number | undefined }
  /** Its process goes away before there was progress: the start counts for nothing. */
  | { readonly type: 'suspended' }
  /** Recovery gives up on it. */
  | { readonly type: 'parked'; readonly parkedAt: string }
  /** The resuming agent's own: its instructions and what it is recognised by. */
  | {
      readonly type: 'agentRefreshed';
      readonly messages: readonly Message[];
      readonly fingerprint: AgentFingerprint;
    }
  | { readonly type: 'stateGiven'; readonly businessState: JsonValue }
  | { readonly type: 'finished'; readonly finishReason: RunEnd; readonly limit?: ReachedLimit | undefined }
  /** `cutReply`: what the model had said of a reply that nobody will ask for again; empty when there is none. */
  | { readonly type: 'aborted'; readonly cutReply?: string | undefined }
  | { readonly type: 'failed'; readonly error: StoredError }
  /** The held input becomes the input of a new run in the same conversation. */
  | { readonly type: 'nextRun'; readonly runId: string; readonly isTurn?: boolean };

export function fold(checkpoint: Checkpoint, outcome: Outcome): Checkpoint {
  return freezeFresh(apply(checkpoint, outcome));
}

function apply(checkpoint: Checkpoint, outcome: Outcome): Checkpoint {
  switch (outcome.type) {
    case 'input':
      return withStatus(addInput(checkpoint, outcome), keepFailure(checkpoint));
    case 'inputJoined':
      return withStatus(
        {
          ...checkpoint,
          messages: appendFrozen(checkpoint.messages, checkpoint.heldInput),
          heldInput: none,
        },
        keepFailure(checkpoint),
      );
    case 'modelResponse':
      return afterResponse(checkpoint, outcome);
    case 'modelDropped':
      return withStatus({
        ...checkpoint,
        stepIndex: checkpoint.stepIndex + (outcome.countsAsStep ? 1 : 0),
        usage: addModelCall(checkpoint.usage, outcome.modelId, outcome.usage),
      });
    case 'remoteAnswer':
      return afterRemoteAnswer(checkpoint, outcome);
    case 'remoteStopped':
      return { ...checkpoint, usage: addRun(checkpoint.usage, { byModel: {}, ...outcome.usage }) };
    case 'callsStarted':
      return withStatus(
        {
          ...checkpoint,
          startedToolCallIds: [...new Set([...checkpoint.startedToolCallIds, ...outcome.toolCallIds])],
        },
        keepFailure(checkpoint),
      );
    case 'results':
      return withStatus(handOver(recordResults(checkpoint, outcome), outcome.takeover));
    case 'childSpent':
      return withStatus(
        { ...checkpoint, delegatedInFlight: withChild(checkpoint.delegatedInFlight, outcome.child) },
        // What the sub-agent gets done is progress of the run, too.
        hasWorked(checkpoint, outcome.child) ? {} : keepFailure(checkpoint),
      );
    case 'taskMoved':
      return {
        ...checkpoint,
        backgroundTasks: withTasks(checkpoint.backgroundTasks ?? none, [outcome.task]),
      };
    case 'paused':
      return withStatus(pause(checkpoint, outcome));
    case 'decided':
      return withStatus(decide(checkpoint, outcome));
    case 'began':
      return withStatus(checkpoint, begunAgain(checkpoint, outcome.forgiven));
    case 'suspended':
      return withStatus(checkpoint, begunOnceLess(checkpoint));
    case 'parked':
      return { ...inProgress(checkpoint, keepFailure(checkpoint)), parkedAt: outcome.parkedAt };
    case 'agentRefreshed':
      return {
        ...checkpoint,
        messages: outcome.messages,
        fingerprint: outcome.fingerprint,
        runInput: shiftRunInput(checkpoint, outcome.messages),
      };
    case 'stateGiven':
      return { ...checkpoint, businessState: outcome.businessState };
    case 'finished':
      return finish(checkpoint, outcome);
    case 'aborted':
      return { ...inProgress(withCutReply(checkpoint, outcome.cutReply), {}), finishReason: 'aborted' };
    case 'failed':
      return {
        ...inProgress(checkpoint, failedAgain(checkpoint, outcome.error)),
        // What fails behind an abort does not undo it: only a person continues the run.
        ...(isAborted(checkpoint) ? { finishReason: 'aborted' } : undefined),
      };
    case 'nextRun':
      return startNextRun(checkpoint, outcome);
    default:
      return assertNever(outcome);
  }
}

/* ── The run's end and the next one's start ── */

/** The next turn reads what the user read; the mark says that it is not all of it. */
function withCutReply(checkpoint: Checkpoint, text: string | undefined): Checkpoint {
  if (text === undefined || text === '') return checkpoint;
  const reply: AssistantMessage = {
    role: 'assistant',
    content: [{ type: 'text', text: text.toWellFormed() }],
    providerMetadata: { lousho: { interrupted: true } },
  };
  return { ...checkpoint, messages: appendFrozen(checkpoint.messages, [reply]) };
}

function isAborted(checkpoint: Checkpoint): boolean {
  return checkpoint.status === 'in-progress' && checkpoint.finishReason === 'aborted';
}

function finish(checkpoint: Checkpoint, outcome: Extract<Outcome, { type: 'finished' }>): FinishedCheckpoint {
  return {
    ...content(checkpoint),
    status: 'finished',
    finishReason: outcome.finishReason,
    ...(outcome.limit === undefined ? undefined : { limit: outcome.limit }),
  };
}

function startNextRun(
  checkpoint: Checkpoint,
  { runId, isTurn = false }: Extract<Outcome, { type: 'nextRun' }>,
): InProgressCheckpoint {
  const { backgroundTasks: _ofThatRun, ...conversation } = inProgress(checkpoint, {});
  return {
    ...conversation,
    runId,
    messages: appendFrozen(checkpoint.messages, checkpoint.heldInput),
    runInput: { start: checkpoint.messages.length, count: checkpoint.heldInput.length },
    heldInput: none,
    stepIndex: 0,
    usage: emptyUsage,
    // The conversation is charged for its turns, and this is still the same one.
    ...(isTurn ? { spentBefore: turnSpend(checkpoint) } : undefined),
  };
}

/* ── Handoff ── */

/** Who answers from here on, with what it says at the head of the transcript. Absent: the agent that the run began with. */
export interface TakeoverFacts {
  readonly activeAgent: string | undefined;
  readonly instructions: string | undefined;
  readonly fingerprint: AgentFingerprint;
  readonly runConfig: RunConfig | undefined;
}

function handOver(checkpoint: Checkpoint, takeover: TakeoverFacts | undefined): Checkpoint {
  if (takeover === undefined) return checkpoint;
  const { activeAgent, fingerprint, runConfig } = takeover;
  const { activeAgent: _before, ...rest } = checkpoint;
  const messages = refreshedMessages(checkpoint.messages, takeover);
  return {
    ...rest,
    messages,
    runInput: shiftRunInput(checkpoint, messages),
    fingerprint,
    ...(activeAgent === undefined ? undefined : { activeAgent }),
    ...(runConfig === undefined ? undefined : { runConfig }),
  };
}

/* ── Input ── */

/** It joins the transcript when no call is open; when the budget is spent, it becomes the input of the next run. */
function addInput(checkpoint: Checkpoint, input: Extract<Outcome, { type: 'input' }>): Checkpoint {
  return {
    ...checkpoint,
    heldInput: appendFrozen(checkpoint.heldInput, input.messages),
    inputIds: withInputId(checkpoint.inputIds, input.inputId),
  };
}

function shiftRunInput(checkpoint: Checkpoint, messages: readonly Message[]): Checkpoint['runInput'] {
  const { start, count } = checkpoint.runInput;
  return { start: Math.max(0, start + messages.length - checkpoint.messages.length), count };
}

/* ── Model ── */

function afterResponse(
  checkpoint: Checkpoint,
  response: Extract<Outcome, { type: 'modelResponse' }>,
): Checkpoint {
  const next: Checkpoint = {
    ...withMessage(checkpoint, response.message),
    usage: addModelCall(checkpoint.usage, response.modelId, response.usage),
    settledResults: response.results.length === 0 ? none : response.results,
  };
  // Tasks in the background are ended first; only then the run is over.
  const isLast =
    ownCalls(response.message).length === 0 &&
    checkpoint.heldInput.length === 0 &&
    openTasks(checkpoint).length === 0;
  if (!isLast) return withStatus(placeResults(next));
  const { finishReason } = response;
  return finish(next, {
    type: 'finished',
    finishReason: finishReason === 'tool-calls' ? 'stop' : finishReason,
  });
}

function afterRemoteAnswer(
  checkpoint: Checkpoint,
  { message, end, usage }: Extract<Outcome, { type: 'remoteAnswer' }>,
): Checkpoint {
  const next = {
    ...withMessage(checkpoint, message),
    usage: addRun(checkpoint.usage, { byModel: {}, ...usage }),
    settledResults: none,
  };
  return end === undefined ? withStatus(next) : finish(next, { type: 'finished', ...end });
}

/** One more step, of which nothing is done yet. */
function withMessage(checkpoint: Checkpoint, message: AssistantMessage): Checkpoint {
  return {
    ...checkpoint,
    messages: appendFrozen(checkpoint.messages, [message]),
    stepIndex: checkpoint.stepIndex + 1,
    startedToolCallIds: none,
    approvals: none,
  };
}

function hasWorked({ delegatedInFlight }: Checkpoint, child: DelegatedInFlight): boolean {
  const known = delegatedInFlight.find(({ checkpointId }) => checkpointId === child.checkpointId);
  return child.usage.modelCalls > (known?.usage.modelCalls ?? 0);
}
