// A run whose content tells its step: after step n it has n + 1 messages, each with its number.
import { CHECKPOINT_VERSION, appendFrozen, deepFreeze, emptyUsage } from '@lousho/contract';

export function firstStep() {
  return deepFreeze({
    ...{ version: CHECKPOINT_VERSION, runId: 'run-0001', agentName: 'agent', status: 'in-progress' },
    stepIndex: 0,
    messages: [{ role: 'user', content: 'message 0' }],
    usage: emptyUsage,
    runInput: { start: 0, count: 1 },
    ...{ heldInput: [], inputIds: [], settledResults: [], startedToolCallIds: [], approvals: [] },
    delegatedInFlight: [],
    savedAt: '2026-01-01T00:00:00.000Z',
  });
}

export function nextStep(run) {
  const stepIndex = run.stepIndex + 1;
  const message = { role: 'assistant', content: [{ type: 'text', text: `message ${stepIndex}` }] };
  return deepFreeze({ ...run, stepIndex, messages: appendFrozen(run.messages, [message]) });
}
