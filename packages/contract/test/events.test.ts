/** The list of event types cannot miss one. */
import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  agentEventTypes,
  type AgentEvent,
  type AgentEventMap,
  type AgentEventOf,
  type AgentEventType,
} from '../src/index.ts';

describe('agentEventTypes', () => {
  it('names every type once', () => {
    // Complete by its type: a new event that is missing here does not compile.
    const every: { readonly [T in AgentEventType]: number } = {
      'run.start': 1,
      'step.start': 1,
      'text.delta': 1,
      'text.done': 1,
      'reasoning.delta': 1,
      'tool.start': 1,
      'tool.resume': 1,
      'tool.done': 1,
      'tool.error': 1,
      'approval.requested': 1,
      'step.done': 1,
      'checkpoint.saved': 1,
      'input.queued': 1,
      'input.steered': 1,
      'input.applied': 1,
      'agent.drift': 1,
      handoff: 1,
      'provider.retry': 1,
      'provider.fallback': 1,
      error: 1,
      'run.done': 1,
    };
    expect([...agentEventTypes].sort()).toEqual(Object.keys(every).sort());
  });

  it('has the payload of each type', () => {
    expectTypeOf<AgentEvent['type']>().toEqualTypeOf<AgentEventType>();
    expectTypeOf<AgentEventOf<'tool.done'>['durationMs']>().toEqualTypeOf<number>();
    expectTypeOf<AgentEventOf<'run.done'>>().toExtend<AgentEventMap['run.done']>();
    const event = {
      type: 'text.delta',
      text: 'hi',
      v: 1,
      runId: 'r',
      seq: 0,
      timestamp: 'now',
    } as AgentEvent;
    if (event.type === 'text.delta') expectTypeOf(event.text).toEqualTypeOf<string>();
    expect(agentEventTypes).toContain(event.type);
  });
});
