/** Checkpoints as real runs save them, of any length. */
import {
  appendFrozen,
  CHECKPOINT_VERSION,
  deepFreeze,
  emptyUsage,
  type Checkpoint,
  type InProgressCheckpoint,
  type Message,
} from '@lousho/contract';

const start: readonly Message[] = appendFrozen(deepFreeze([]), [{ role: 'user', content: 'Begin.' }]);

export function beginRun(fields: Partial<InProgressCheckpoint> = {}): InProgressCheckpoint {
  return deepFreeze({
    version: CHECKPOINT_VERSION,
    runId: 'run00001',
    agentName: 'agent',
    status: 'in-progress',
    messages: start,
    stepIndex: 0,
    usage: emptyUsage,
    runInput: { start: 0, count: 1 },
    heldInput: [],
    inputIds: [],
    settledResults: [],
    startedToolCallIds: [],
    approvals: [],
    delegatedInFlight: [],
    savedAt: '2026-01-01T00:00:00.000Z',
    ...fields,
  });
}

/** The two saves of a turn with one tool call: the response, and its result. About 1.4 KB are new. */
export function nextTurn(before: InProgressCheckpoint): [InProgressCheckpoint, InProgressCheckpoint] {
  const stepIndex = before.stepIndex + 1;
  const toolCallId = `call_${stepIndex}`;
  const responded = withMessages({ ...before, stepIndex }, [
    {
      role: 'assistant',
      content: [
        { type: 'text', text: `Step ${stepIndex}. ${'thinking '.repeat(40)}` },
        { type: 'tool-call', toolCallId, toolName: 'look', args: { at: stepIndex } },
      ],
    },
  ]);
  const answered = withMessages(responded, [
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId,
          toolName: 'look',
          result: { page: stepIndex, text: 'found '.repeat(120) },
        },
      ],
    },
  ]);
  return [responded, answered];
}

/** All saves of a run with so many turns. */
export function runOf(turns: number, fields?: Partial<InProgressCheckpoint>): InProgressCheckpoint[] {
  let state = beginRun(fields);
  const states = [state];
  for (let turn = 0; turn < turns; turn += 1) {
    const saves = nextTurn(state);
    states.push(...saves);
    state = saves[1];
  }
  return states;
}

export function withMessages<State extends Checkpoint>(before: State, messages: readonly Message[]): State {
  return deepFreeze({ ...before, messages: appendFrozen(before.messages, messages) });
}

export function last<Item>(items: readonly Item[]): Item {
  const item = items.at(-1);
  if (item === undefined) throw new Error('the list is empty');
  return item;
}
