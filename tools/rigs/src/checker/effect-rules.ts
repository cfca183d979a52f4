/** What was done: nothing again that is recorded, nothing twice that was asked of a person, every model call counted. */
import { jsonEqual } from '@lousho/contract';
import type { LineOf } from '../effect-log.ts';
import { beganAfter, executionOf, groupBy, type Facts, type Indexed } from './evidence.ts';
import { resultsOf } from './state-rules.ts';

type Started = Indexed<LineOf<'tool.started'>>;

/** A call whose result was acknowledged does not begin any more. */
export function* recordedResultsStand(facts: Facts): Iterable<string> {
  const acknowledged = groupBy(facts.all('save.acknowledged'), ({ session }) => session);
  for (const start of facts.all('tool.started')) {
    const position = positionOf(start.callId);
    const recorded = acknowledged
      .get(start.session)
      ?.find(
        (save) =>
          (save.digest.position > position || save.digest.resultsOfStep.includes(start.callId)) &&
          beganAfter(start, save),
      );
    if (recorded !== undefined)
      yield `${start.session} ${start.callId} began in line ${start.index}; line ${recorded.index} had its result.`;
  }
}

/** A call begins once, and once more for each execution that was cut before it could record the result. */
export function* callsBeginOncePerCut(facts: Facts): Iterable<string> {
  for (const starts of startsByCall(facts).values()) {
    for (const [again, start] of starts
      .slice(1)
      .map((line, index) => [line, starts[index] as Started] as const)) {
      const isCut =
        facts.interruptedAt(start) < again.index ||
        // A stopped process came late with what it had begun before the other one.
        (again.turnAt < start.at && facts.interruptedAt(again) < again.index);
      if (!isCut || again.op === start.op)
        yield `${again.session} ${again.callId} began in line ${start.index} and again in line ${again.index} without a cut.`;
    }
    const keys = new Set(starts.map(({ key }) => key));
    if (keys.size > 1) yield `${starts[0]?.session} ${starts[0]?.callId} ran under ${keys.size} keys.`;
  }
}

/** What a person approved, and what is marked as not to be repeated, begins at most once. */
export function* atMostOnceCalls(facts: Facts): Iterable<string> {
  for (const starts of startsByCall(facts).values()) {
    const [first] = starts;
    if (first === undefined || !['refund', 'careful'].includes(first.toolName)) continue;
    if (starts.length > 1)
      yield `${first.session} ${first.callId} (${first.toolName}) began ${starts.length} times.`;
  }
}

/** A gated call begins only behind a yes, as the person saw it, and the result says what became of the decision. */
export function* onlyApprovedCallsBegin(facts: Facts): Iterable<string> {
  const decided = facts.all('op.decided');
  for (const start of facts.all('tool.started')) {
    if (start.toolName !== 'refund') continue;
    const yes = decided.find(
      ({ session, callId, approved, index }) =>
        session === start.session && callId === start.callId && approved && index < start.index,
    );
    if (yes === undefined)
      yield `${start.session} ${start.callId} began in line ${start.index} and nobody had approved it.`;
    else if (!jsonEqual(yes.args, start.args))
      yield `${start.session} ${start.callId} began in line ${start.index} with other arguments than were approved.`;
  }
  for (const [session, final] of facts.evidence.finals) {
    if (final === null) continue;
    for (const { toolCallId, toolName, approval, kind } of resultsOf(final).values()) {
      if (toolName !== 'refund') continue;
      const begun = facts
        .all('tool.started')
        .some((start) => start.session === session && start.callId === toolCallId);
      if (approval === undefined) yield `${session} ${toolCallId} has a result and no decision.`;
      else if (!approval.approved && (begun || kind !== 'rejected'))
        yield `${session} ${toolCallId} was rejected and ran.`;
      else if (approval.approved && !(begun ? [undefined, 'interrupted'] : ['interrupted']).includes(kind))
        yield `${session} ${toolCallId} was approved; it ${begun ? 'ran' : 'did not run'} and its result says ${kind ?? 'success'}.`;
    }
  }
}

/** Calls begin when the response that asks for them is stored, and the model is asked when all results are. */
export function* effectsFollowTheirSave(facts: Facts): Iterable<string> {
  const last = new Map<string, Indexed<LineOf<'save.acknowledged'>>>();
  for (const line of facts.lines) {
    if (line.kind === 'save.acknowledged') last.set(executionOf(line), line);
    if (
      line.kind === 'tool.started' &&
      last.get(executionOf(line))?.digest.position !== positionOf(line.callId)
    )
      yield `${line.session} ${line.callId} began in line ${line.index} before its response was stored.`;
    if (line.kind !== 'model.asked') continue;
    // The first response of a run is the first that is stored of it.
    const digest = last.get(executionOf(line))?.digest;
    if (digest !== undefined && (digest.position !== line.position - 1 || digest.hasOpenStep))
      yield `${line.session} asked for response ${line.position} in line ${line.index} before all results were stored.`;
  }
}

/** A result that is no failure comes from a call that ended. */
export function* resultsAreTrue(facts: Facts): Iterable<string> {
  const done = new Set(facts.all('tool.done').map(({ session, callId }) => `${session} ${callId}`));
  for (const [session, final] of facts.evidence.finals) {
    if (final === null) continue;
    for (const { toolCallId, kind } of resultsOf(final).values())
      if (kind === undefined && !done.has(`${session} ${toolCallId}`))
        yield `${session} ${toolCallId} has a result, and the tool never ended.`;
  }
}

/** A response that was acknowledged is not asked for again. */
export function* responsesAreAskedOnce(facts: Facts): Iterable<string> {
  const acknowledged = groupBy(facts.all('save.acknowledged'), ({ session }) => session);
  for (const asked of facts.all('model.asked')) {
    const known = acknowledged
      .get(asked.session)
      ?.find((save) => save.digest.position >= asked.position && beganAfter(asked, save));
    if (known !== undefined)
      yield `${asked.session} asked for response ${asked.position} in line ${asked.index}; line ${known.index} had it.`;
  }
}

/** Usage counts the model calls that were answered, but for those whose execution was cut before the response was stored. */
export function* usageCountsEachCallOnce(facts: Facts): Iterable<string> {
  for (const { index, session, digest } of facts.all('save.acknowledged'))
    if (digest.modelCalls !== digest.stepIndex)
      yield `${session} counted ${digest.modelCalls} calls for ${digest.stepIndex} responses in line ${index}.`;
  const answers = groupBy(facts.all('model.answered'), ({ session }) => session);
  for (const [session, final] of facts.evidence.finals) {
    if (final === null) continue;
    const lastPosition = final.messages.filter(({ role }) => role === 'assistant').length;
    const byPosition = groupBy(answers.get(session) ?? [], ({ position }) => position);
    for (const [position, given] of byPosition) {
      const uncut = given.filter((answer) => facts.interruptedAt(answer) === Infinity);
      const most = position <= lastPosition ? 1 : 0;
      if (uncut.length > most)
        yield `${session} has ${most} response ${position}, and ${uncut.length} executions got it and were not cut.`;
    }
    const firstPosition = lastPosition - final.stepIndex + 1;
    let counted = 0;
    for (let position = 1; position <= lastPosition; position += 1) {
      if (!byPosition.has(position))
        yield `${session} has response ${position}, and the model never gave it.`;
      else if (position >= firstPosition) counted += 1;
    }
    if (final.usage.modelCalls !== counted)
      yield `${session} says ${final.usage.modelCalls} model calls; ${counted} were answered and kept.`;
  }
}

function startsByCall(facts: Facts): Map<string, Started[]> {
  return groupBy(facts.all('tool.started'), ({ session, callId }) => `${session} ${callId}`);
}

/** `c<position>-<index>`: which response asked for it. */
function positionOf(callId: string): number {
  return Number(/^c(\d+)-/.exec(callId)?.[1]);
}
