/** Results on their way into the transcript: in call order, those behind an open call wait beside it. */
import {
  addDelegated,
  appendFrozen,
  deepFreeze,
  lastStep,
  type AssistantMessage,
  type Checkpoint,
  type DelegatedInFlight,
  type DelegatedUsage,
  type JsonValue,
  type LastStep,
  type Message,
  type StoredBackgroundTask,
  type ToolResultPart,
} from '@lousho/contract';
import { none } from './start-run.ts';
import { withTasks } from './task-ledger.ts';

export interface RecordedResults {
  readonly results: readonly ToolResultPart[];
  /** The caller's state as the tools left it; absent: they did not touch it. */
  readonly businessState?: JsonValue;
  /** Sub-agents that ended with these results: what they spent. */
  readonly delegated?: readonly { readonly checkpointId: string; readonly usage: DelegatedUsage }[];
  /** Background tasks that these results gave, or that are over with them. */
  readonly tasks?: readonly StoredBackgroundTask[];
}

export function recordResults(checkpoint: Checkpoint, outcome: RecordedResults): Checkpoint {
  let { usage, delegatedInFlight } = checkpoint;
  for (const child of outcome.delegated ?? []) {
    usage = addDelegated(usage, child.usage);
    delegatedInFlight = delegatedInFlight.filter((known) => known.checkpointId !== child.checkpointId);
  }
  return placeResults({
    ...checkpoint,
    messages: showChangedArgs(checkpoint, outcome.results),
    settledResults:
      checkpoint.settledResults.length === 0
        ? outcome.results
        : [...checkpoint.settledResults, ...outcome.results],
    usage,
    delegatedInFlight,
    ...(outcome.tasks === undefined
      ? undefined
      : { backgroundTasks: withTasks(checkpoint.backgroundTasks ?? none, outcome.tasks) }),
    ...('businessState' in outcome ? { businessState: outcome.businessState } : undefined),
  });
}

/** Results that are next in call order go behind their response; those behind an open call wait. */
export function placeResults(checkpoint: Checkpoint): Checkpoint {
  const step = lastStep(checkpoint.messages);
  if (step === undefined || checkpoint.settledResults.length === 0) return checkpoint;
  const placed: Message[] = [];
  const waiting = [...checkpoint.settledResults];
  for (let index = step.answered; index < step.calls.length; index += 1) {
    const at = waiting.findIndex((result) => result.toolCallId === step.calls[index]?.toolCallId);
    if (at < 0) break;
    placed.push({ role: 'tool', content: [waiting[at] as ToolResultPart] });
    waiting.splice(at, 1);
  }
  const isStepOver = step.answered + placed.length === step.calls.length;
  return {
    ...checkpoint,
    messages: appendFrozen(checkpoint.messages, placed),
    settledResults: waiting.length === 0 ? none : waiting,
    ...(isStepOver ? { approvals: none, startedToolCallIds: none } : undefined),
  };
}

/** Approved with changes: the transcript shows the call that ran. Only now, so that a crash before the result keeps what was proposed. */
function showChangedArgs(checkpoint: Checkpoint, results: readonly ToolResultPart[]): readonly Message[] {
  if (checkpoint.approvals.length === 0) return checkpoint.messages;
  const step = lastStep(checkpoint.messages);
  const changed = new Map<string, JsonValue>();
  for (const { toolCallId, decision, childId } of checkpoint.approvals) {
    // Changed inside a sub-agent: its transcript shows it.
    if (childId !== undefined) continue;
    const hasResult = results.some((result) => result.toolCallId === toolCallId);
    if (hasResult && decision?.approved === true && decision.args !== undefined)
      changed.set(toolCallId, decision.args);
  }
  return step === undefined || changed.size === 0
    ? checkpoint.messages
    : rewriteCalls(checkpoint.messages, step, changed);
}

function rewriteCalls(
  messages: readonly Message[],
  step: LastStep,
  args: ReadonlyMap<string, JsonValue>,
): readonly Message[] {
  const message: AssistantMessage = {
    ...step.message,
    content: step.message.content.map((part) =>
      part.type === 'tool-call' && args.has(part.toolCallId)
        ? { ...part, args: args.get(part.toolCallId) as JsonValue }
        : part,
    ),
  };
  return deepFreeze([...messages.slice(0, step.index), message, ...messages.slice(step.index + 1)]);
}

export function withChild(
  children: readonly DelegatedInFlight[],
  child: DelegatedInFlight,
): readonly DelegatedInFlight[] {
  return [...children.filter((known) => known.checkpointId !== child.checkpointId), child];
}
