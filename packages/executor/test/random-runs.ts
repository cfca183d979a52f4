/** Random runs as sequences of outcomes, each one valid for the state it meets: what properties of the pure functions run over. */
import type { Checkpoint, JsonValue, ToolResultPart } from '@lousho/contract';
import { fold, type Outcome } from '../src/fold.ts';
import { startRun } from '../src/start-run.ts';
import { openCalls, undecidedApprovals } from '../src/next-action.ts';
import { approvalOf, assistant, call, noSavedAt, oneCall, user } from './checkpoints.ts';
import { fc } from './properties.ts';

/** Numbers that a run reads its choices from. */
export type RandomHistory = readonly (readonly [kind: number, choice: number])[];

export function randomHistory(): fc.Arbitrary<RandomHistory> {
  return fc.array(fc.tuple(fc.nat({ max: 99 }), fc.nat({ max: 0xffff })), { maxLength: 25 });
}

export interface Transition {
  readonly before: Checkpoint;
  readonly outcome: Outcome;
  readonly after: Checkpoint;
}

export function transitionsOf(history: RandomHistory): readonly Transition[] {
  const transitions: Transition[] = [];
  let before: Checkpoint = startRun(
    {
      runId: 'run00001',
      agentName: 'agent',
      fingerprint: { version: 1, hash: '0', tools: {}, instructions: '0' },
    },
    { messages: [], inputIds: [] },
    { messages: [user('go')], inputId: undefined },
  );
  for (const [index, [kind, choice]] of history.entries()) {
    const possible = outcomesFor(before, choice, index);
    const outcome = possible[kind % possible.length] as Outcome;
    const after = fold(before, outcome);
    transitions.push({ before, outcome, after });
    before = after;
  }
  return transitions;
}

export function statesOf(history: RandomHistory): readonly Checkpoint[] {
  return transitionsOf(history).map(({ after }) => after);
}

function outcomesFor(state: Checkpoint, choice: number, index: number): readonly Outcome[] {
  if (state.status === 'finished') return finishedOutcomes(state, choice, index);
  const always: Outcome[] = [
    {
      type: 'input',
      messages: [user(`more ${index}`)],
      inputId: choice % 2 === 0 ? `input-${index}` : undefined,
    },
    { type: 'input', messages: [user(`steer ${index}`)] },
    { type: 'stateGiven', businessState: { choice } },
    { type: 'childSpent', child: { checkpointId: `child-${choice % 3}`, usage: oneCall } },
  ];
  if (state.status === 'in-progress')
    always.push(
      { type: 'began' },
      { type: 'aborted' },
      { type: 'failed', error: { name: 'Error', message: 'down', retryable: choice % 2 === 0 } },
    );
  return [
    ...always,
    ...(openCalls(state).length > 0 ? stepOutcomes(state, choice) : freeOutcomes(state, choice, index)),
  ];
}

function finishedOutcomes(state: Checkpoint, choice: number, index: number): readonly Outcome[] {
  return state.heldInput.length > 0
    ? [{ type: 'nextRun', runId: `run0${index}` }]
    : [{ type: 'input', messages: [user(`later ${choice}`)] }];
}

/** A call is open. */
function stepOutcomes(state: Checkpoint, choice: number): readonly Outcome[] {
  const open = openCalls(state);
  const undecided = undecidedApprovals(state, open);
  const isWaitedFor = (id: string): boolean => undecided.some(({ toolCallId }) => toolCallId === id);
  const free = open.filter(({ call: { toolCallId } }) => !isWaitedFor(toolCallId));
  const chosen = free.filter((_, at) => ((choice >> at) & 1) === 1);
  const askable = chosen.filter(
    ({ call: { toolCallId } }) => !state.approvals.some((approval) => approval.toolCallId === toolCallId),
  );
  const decided = undecided[choice % Math.max(1, undecided.length)];
  // Settled in any order.
  const settled = (choice & 16) === 0 ? chosen : [...chosen].reverse();
  return [
    ...(settled.length === 0
      ? []
      : ([
          { type: 'results', results: settled.map(({ call }) => resultOfCall(call.toolCallId, choice)) },
          {
            type: 'results',
            results: settled.map(({ call }) => resultOfCall(call.toolCallId, choice)),
            businessState: { after: choice },
          },
          {
            type: 'results',
            results: settled.map(({ call }) => resultOfCall(call.toolCallId, choice)),
            takeover: {
              activeAgent: choice % 3 === 0 ? undefined : `agent ${choice % 3}`,
              instructions: choice % 2 === 0 ? undefined : `Be ${choice % 5}.`,
              fingerprint: { version: 1, hash: String(choice), tools: {}, instructions: '0' },
              runConfig: undefined,
            },
          },
          { type: 'callsStarted', toolCallIds: settled.map(({ call }) => call.toolCallId) },
        ] satisfies Outcome[])),
    ...(askable.length === 0
      ? []
      : [{ type: 'paused' as const, approvals: askable.map(({ call }) => approvalOf(call.toolCallId)) }]),
    ...(decided === undefined
      ? []
      : ([{ type: 'decided', approvalId: decided.id, decision: decisionOf(choice) }] satisfies Outcome[])),
  ];
}

function decisionOf(choice: number) {
  return {
    approved: choice % 3 !== 0,
    source: 'person',
    decidedAt: noSavedAt,
    ...(choice % 5 === 0 ? { args: { changed: choice } } : undefined),
  } as const;
}

/** No call is open. */
function freeOutcomes(state: Checkpoint, choice: number, index: number): readonly Outcome[] {
  const calls = Array.from({ length: choice % 4 }, (_, at) => call(`c${index}-${at}`));
  const hopeless = calls.filter((_, at) => ((choice >> (at + 4)) & 1) === 1);
  return [
    {
      type: 'modelResponse',
      message: assistant(`step ${index}`, ...calls),
      finishReason: calls.length > 0 ? 'tool-calls' : 'stop',
      modelId: 'mock',
      usage: oneCall,
      results: hopeless.map(({ toolCallId }) => resultOfCall(toolCallId, 'none')),
    },
    { type: 'modelDropped', modelId: 'mock', usage: oneCall, countsAsStep: choice % 2 === 0 },
    { type: 'finished', finishReason: 'max-steps' },
    ...(state.heldInput.length > 0 ? [{ type: 'inputJoined' as const }] : []),
  ];
}

function resultOfCall(toolCallId: string, result: JsonValue): ToolResultPart {
  return { type: 'tool-result', toolCallId, toolName: toolCallId, result };
}
