/** What is left when nothing fails any more and everything has come to its end. */
import {
  classifyCheckpointId,
  jsonEqual,
  ownCalls,
  textOf,
  type Checkpoint,
  type ExecutionResult,
  type Message,
} from '@lousho/contract';
import { conversation } from '../../crash/kept-transcript.ts';
import { transcriptProblems } from '../../transcript-problems.ts';
import type { Facts } from '../facts.ts';
import type { ConversationPlan } from '../plan.ts';
import { RESPONSE_USAGE } from '../script.ts';

export interface WorldEnd {
  readonly conversations: readonly ConversationEnd[];
  /** What the store holds. */
  readonly checkpointIds: readonly string[];
  readonly approvalIds: readonly string[];
}
export interface ConversationEnd {
  readonly plan: ConversationPlan;
  /** The whole transcript. */
  readonly messages: readonly Message[];
  /** Of a run; a session has none left. */
  readonly checkpoint: Checkpoint | undefined;
  /** What callers got, as long as it was no abort. */
  readonly results: readonly ExecutionResult[];
  /** Words that joined the run, as whoever said them was told. */
  readonly joined: ReadonlySet<string>;
}

/** G1 G2 G6, and each run has come to its end. */
export function* runsAreOver(_facts: Facts, { conversations }: WorldEnd): Iterable<string> {
  for (const { plan, messages, checkpoint } of conversations) {
    for (const problem of transcriptProblems(messages)) yield `${plan.id}: ${problem}`;
    if (checkpoint === undefined) continue;
    const { status, settledResults, heldInput, approvals, startedToolCallIds, delegatedInFlight } =
      checkpoint;
    if (status !== 'finished') yield `${plan.id} is ${status}.`;
    const left = [settledResults, heldInput, approvals, startedToolCallIds, delegatedInFlight].flat();
    if (left.length > 0)
      yield `${plan.id} has finished with ${left.length} results, inputs or marks left over.`;
  }
}

/** G18: each input once, and in the order of the conversation what its callers were told is kept (G15). */
export function* inputsCountOnce(_facts: Facts, { conversations }: WorldEnd): Iterable<string> {
  for (const { plan, messages, joined } of conversations) {
    const said = messages.filter(({ role }) => role === 'user').map(textOf);
    for (const { text, more } of plan.inputs) {
      const count = said.filter((words) => words === text).length;
      if (count !== 1) yield `${plan.id} has "${text}" ${count} times.`;
      for (const word of more) {
        const times = said.filter((words) => words === word.text).length;
        if (times > 1) yield `${plan.id} has "${word.text}" ${times} times.`;
        if (times === 0 && joined.has(word.text)) yield `${plan.id} lost "${word.text}", which had joined.`;
      }
    }
  }
}

/** G15: what a caller got is the beginning of what is there. */
export function* resultsAreKept(_facts: Facts, { conversations }: WorldEnd): Iterable<string> {
  for (const { plan, messages, results } of conversations) {
    const kept = conversation(messages);
    for (const result of results) {
      const lost = conversation(result.messages).findIndex((message, index) => !isKept(message, kept[index]));
      if (lost >= 0)
        yield `${plan.id} lost message ${lost} of a result that was given (${result.finishReason}).`;
    }
  }
}

/** The arguments of a call may be those that a person gave, once it has its result. */
function isKept(before: Message, after: Message | undefined): boolean {
  if (after === undefined) return false;
  if (before === after || jsonEqual(before as never, after as never)) return true;
  return (
    before.role === 'assistant' &&
    after.role === 'assistant' &&
    ownCalls(before).length === ownCalls(after).length &&
    ownCalls(before).length > 0
  );
}

/** G23: each model call once, those of sub-agents included. */
export function* usageIsExact(facts: Facts): Iterable<string> {
  for (const [runId, run] of facts.usages) {
    const { id, usage } = run;
    const known = callsOf(run) - usage.modelCalls + (usage.delegated?.modelCalls ?? 0);
    const children = [...facts.usages.values()].filter(({ id: other }) => isChildOf(other, id, runId));
    const below = children.reduce((sum, child) => sum + callsOf(child), 0);
    if (known !== below)
      yield `${id} (${runId}) counts ${known} model calls of sub-agents, and they made ${below}.`;
    if (usage.estimated !== true && usage.inputTokens !== RESPONSE_USAGE.inputTokens * usage.modelCalls)
      yield `${id} counts ${usage.inputTokens} input tokens for ${usage.modelCalls} model calls.`;
  }
}

/** One that was stopped may never have got the results of what it delegated. */
function callsOf({ usage, delegatedInFlight }: Pick<Checkpoint, 'usage' | 'delegatedInFlight'>): number {
  return delegatedInFlight.reduce((sum, child) => sum + child.usage.modelCalls, usage.modelCalls);
}

/** One level below. */
function isChildOf(id: string, leadId: string, leadRunId: string): boolean {
  const rest = id.startsWith(`${leadId}.sub-`) ? id.slice(leadId.length) : undefined;
  return (
    rest !== undefined && rest.startsWith(`.sub-${leadRunId.slice(0, 8)}-`) && rest.lastIndexOf('.') === 0
  );
}

/** Nothing waits and nothing is left behind. */
export function* nothingIsLeftBehind(
  _facts: Facts,
  { conversations, checkpointIds, approvalIds }: WorldEnd,
): Iterable<string> {
  const runs = conversations.filter(({ plan }) => plan.kind === 'run').map(({ plan }) => plan.id);
  for (const id of checkpointIds) {
    const { kind } = classifyCheckpointId(id);
    if (!runs.includes(id)) yield `${id} (${kind}) is left behind.`;
  }
  for (const id of approvalIds) yield `${id} is left in the inbox.`;
}
