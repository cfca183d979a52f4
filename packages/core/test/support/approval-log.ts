/** What was decided and what ran, noted beside the agent, and what is wrong with a run that is over when the two are compared. */
import {
  jsonEqual,
  resultOf,
  type ApprovalDecision,
  type Checkpoint,
  type JsonValue,
  type Message,
  type ToolCallPart,
  type ToolContext,
  type ToolResultPart,
} from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';

/** `handoff`: to the desk, or from the desk back to the agent itself. */
export type CallKind = 'look' | 'pay' | 'mail' | 'ask_question' | 'handoff';

/** A decision that was made. `by` is another one each time, so that the audit tells which decision stands behind a result. */
export interface Given extends ApprovalDecision {
  readonly by: string;
  readonly step: number;
  readonly toolCallId: string;
  /** Made when the approval had expired. */
  readonly isLate: boolean;
  /** `false`: its process died on the way, so nobody knows whether it counts. */
  isSure: boolean;
}
interface ToolRun {
  readonly step: number;
  readonly toolCallId: string;
  readonly agentName: string;
  readonly args: JsonValue;
  readonly approval: ToolContext['approval'];
}

export class ApprovalLog {
  readonly given: Given[] = [];
  readonly runs: ToolRun[] = [];
  /** What should never happen and did, one sentence each. */
  readonly problems: string[] = [];
  crashCount = 0;
  /** Whether an agent without `mail` has gone on with the run: the model may then ask for a tool that is not there. */
  wasUnequipped = false;
  /** The same of one that nobody may be handed over to. */
  wasUnstaffed = false;

  constructor(
    readonly steps: readonly (readonly CallKind[])[],
    readonly toolConcurrency: 1 | 'unbounded',
    readonly gatesHandoffs: boolean,
  ) {}

  note({ step, toolCallId, agentName, approval }: ToolContext, args: JsonValue): void {
    this.runs.push({ step, toolCallId, agentName, args, approval });
    for (const id of this.#gatedIds(step))
      if (approval !== undefined && !this.given.some((each) => each.step === step && each.toolCallId === id))
        this.problems.push(`${toolCallId} of step ${step} ran before anybody had decided ${id}.`);
  }

  /** Of a run that is over. */
  *problemsOf(stored: Checkpoint): Iterable<string> {
    yield* this.problems;
    yield* transcriptProblems(stored.messages);
    if (stored.status !== 'finished') yield `It is ${stored.status}.`;
    if (stored.approvals.length > 0) yield 'It still names approvals.';
    // One at a time: a crash cuts the call that runs, and no other.
    const cutCount = stored.messages.filter((message) => resultOf(message)?.kind === 'interrupted').length;
    if (this.toolConcurrency === 1 && cutCount > this.crashCount)
      yield `${cutCount} calls are interrupted by ${this.crashCount} crashes.`;
    if (stored.activeAgent !== whoAnswers(stored.messages)) yield `${stored.activeAgent} answers.`;
    let at = stored.messages.findIndex(({ role }) => role === 'assistant');
    for (const [index, kinds] of this.steps.entries()) {
      const message = stored.messages[at];
      const calls = message?.role === 'assistant' ? message.content.filter(isCall) : [];
      if (calls.length !== kinds.length) yield `Step ${index + 1} has ${calls.length} calls.`;
      const agentName = whoAnswers(stored.messages.slice(0, at)) ?? 'agent';
      for (const run of this.runs)
        if (run.step === index + 1 && run.agentName !== agentName)
          yield `${run.toolCallId} of step ${index + 1} ran for ${run.agentName} instead of ${agentName}.`;
      const handoffs = stored.messages.slice(at + 1, at + 1 + calls.length).filter(tookOver);
      if (handoffs.length > 1) yield `Step ${index + 1} was handed over ${handoffs.length} times.`;
      for (const [place, call] of calls.entries()) {
        const result = resultOf(stored.messages[at + 1 + place] ?? { role: 'user', content: '' });
        if (result?.toolCallId !== call.toolCallId) yield `${call.toolCallId} has no result in its place.`;
        else yield* this.#callProblems(index + 1, call, result);
      }
      at += 1 + calls.length;
    }
    if (stored.messages.length !== at + 1) yield 'There is more behind the last answer.';
  }

  #gatedIds(step: number): readonly string[] {
    const isAsked = (kind: CallKind): boolean =>
      kind !== 'look' && kind !== 'handoff' && !(kind === 'mail' && this.wasUnequipped);
    return (this.steps[step - 1] ?? []).flatMap((kind, index) => (isAsked(kind) ? [callId(index)] : []));
  }

  *#callProblems(step: number, call: ToolCallPart, result: ToolResultPart): Iterable<string> {
    const { toolCallId, toolName } = call;
    const name = `${toolName} ${toolCallId} of step ${step}`;
    const runs = this.runs.filter((run) => run.step === step && run.toolCallId === toolCallId);
    const isHandoff = toolName.startsWith('handoff_to_');
    const proposed = argsOf(isHandoff ? 'handoff' : (toolName as CallKind), step, toolCallId);
    if (toolName === 'look') {
      if (result.kind !== undefined || result.approval !== undefined) yield `${name} is ${result.kind}.`;
      if (runs.length < 1 || runs.length > 1 + this.crashCount) yield `${name} ran ${runs.length} times.`;
      return;
    }
    if (result.kind === 'not-found' && this.wasUnequipped && toolName === 'mail') {
      if (runs.length > 0 || result.approval !== undefined) yield `${name} was not there, and ran.`;
      return;
    }
    if (isHandoff && result.approval === undefined) {
      // Another one of the response was first, or nobody was there to ask.
      // Nobody is asked about the way back.
      const isGated = this.gatesHandoffs && toolName === 'handoff_to_desk';
      const kinds = isGated ? ['not-run'] : ['done', 'not-run'];
      if (this.wasUnstaffed) kinds.push('not-found');
      if (!kinds.includes(result.kind ?? 'done')) yield `${name} is ${result.kind ?? 'done'}, unasked.`;
      return;
    }
    const taken = this.given.find(
      (each) => each.id === result.approval?.id && each.by === result.approval.by,
    );
    if (taken === undefined || taken.step !== step || taken.toolCallId !== toolCallId) {
      yield `${name} has the result of a decision that nobody made about it.`;
      return;
    }
    const sure = this.given.filter((each) => each.id === taken.id && each.isSure);
    if (sure.length > 1 || (sure.length === 1 && sure[0] !== taken)) yield `${name} was decided twice.`;
    yield* auditProblems(name, taken, { result, proposed, shown: call.args });
    yield* outcomeProblems(name, taken, { result, proposed, runs, mayBeCut: this.crashCount > 0 });
  }
}

interface Seen {
  readonly result: ToolResultPart;
  readonly proposed: JsonValue;
}

/** The result says who decided what, and the transcript shows the call that ran. */
function* auditProblems(
  name: string,
  { id, by, note, args, approved, isLate }: Given,
  { result: { approval }, proposed, shown }: Seen & { readonly shown: JsonValue },
): Iterable<string> {
  const isChanged = approved && !isLate && args !== undefined;
  const expected = {
    id,
    by,
    approved: approved && !isLate,
    ...(isLate ? { source: 'expiry' } : undefined),
    ...(note === undefined || isLate ? undefined : { note }),
    ...(isChanged ? { proposedArgs: proposed } : undefined),
  };
  const { decidedAt, ...audit } = approval ?? { decidedAt: '' };
  if (!jsonEqual(audit, expected))
    yield `${name} has the audit ${JSON.stringify(audit)} instead of ${JSON.stringify(expected)}.`;
  if (Number.isNaN(Date.parse(decidedAt))) yield `${name} was decided at "${decidedAt}".`;
  if (!jsonEqual(shown, isChanged ? args : proposed)) yield `${name} is shown with ${JSON.stringify(shown)}.`;
}

/** What came of the call is what the decision said. */
function* outcomeProblems(
  name: string,
  taken: Given,
  {
    result,
    proposed,
    runs,
    mayBeCut,
  }: Seen & { readonly runs: readonly ToolRun[]; readonly mayBeCut: boolean },
): Iterable<string> {
  const { approved, isLate, note, answer, by, id, args = proposed } = taken;
  const isHandoff = result.toolName.startsWith('handoff_to_');
  const mayRun = approved && !isLate && answer === undefined && !isHandoff;
  if (runs.length > (mayRun ? 1 : 0)) yield `${name} ran ${runs.length} times.`;
  for (const run of runs) {
    if (!jsonEqual(run.args, args)) yield `${name} ran with ${JSON.stringify(run.args)}.`;
    const seen = { id, by, ...(note === undefined ? undefined : { note }) };
    if (!jsonEqual(run.approval, seen)) yield `${name} saw ${JSON.stringify(run.approval)}.`;
  }
  const failure = result.result as { readonly note?: string };
  const kind = result.kind ?? 'done';
  if (isLate) {
    if (kind !== 'denied') yield `${name} was decided too late and is ${kind}.`;
  } else if (!approved) {
    if (kind !== 'rejected' || failure.note !== note) yield `${name} was rejected and is ${kind}.`;
  } else if (answer !== undefined) {
    const options: readonly string[] = OPTIONS;
    if (!jsonEqual(result.result, { answer, option: options.indexOf(answer) }))
      yield `${name} was answered and has ${JSON.stringify(result.result)}.`;
  } else if (isHandoff) {
    if (kind !== 'done') yield `${name} was agreed to and is ${kind}.`;
  } else if (kind === 'done') {
    if (runs.length !== 1 || !jsonEqual(result.result, { done: args }))
      yield `${name} has ${JSON.stringify(result.result)} after ${runs.length} runs.`;
  } else if (kind !== 'interrupted' || !mayBeCut) yield `${name} was approved and is ${kind}.`;
}

export const OPTIONS = ['tea', 'milk'] as const;

/** The same ids in every step, as some providers give them. */
export function callId(index: number): string {
  return `call_${index}`;
}

/** What the model asks for. */
export function argsOf(kind: CallKind, step: number, toolCallId: string): JsonValue {
  if (kind === 'handoff') return { reason: `${step} ${toolCallId}` };
  return kind === 'ask_question'
    ? { question: `${step} ${toolCallId}?`, options: [...OPTIONS], allowFreeText: false }
    : { n: step * 100 + Number(toolCallId.slice('call_'.length)) };
}

/** By the handoffs that took place; `undefined`: the agent itself. */
export function whoAnswers(messages: readonly Message[]): string | undefined {
  const last = resultOf(messages.findLast(tookOver) ?? { role: 'user', content: '' });
  const to = last?.toolName.slice('handoff_to_'.length);
  return to === 'agent' ? undefined : to;
}

function tookOver(message: Message): boolean {
  const result = resultOf(message);
  return result !== undefined && result.toolName.startsWith('handoff_to_') && result.kind === undefined;
}

function isCall(part: { readonly type: string }): part is ToolCallPart {
  return part.type === 'tool-call';
}
