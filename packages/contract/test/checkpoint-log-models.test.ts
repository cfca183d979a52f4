/** A log does not name the model of each save: the run's fingerprint does. */
import { describe, expect, it } from 'vitest';
import {
  addModelCall,
  emptyUsage,
  foldEvents,
  headerFromEvent,
  nextEvent,
  checkpointHeader,
} from '../src/index.ts';
import type { Checkpoint, LogEvent, ModelUsage } from '../src/index.ts';
import { aCheckpoint } from './support/checkpoints.ts';

const call: ModelUsage = {
  inputTokens: 10,
  outputTokens: 5,
  totalTokens: 15,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  modelCalls: 1,
};
const fingerprintOf = (model: string) => ({ version: 1, hash: 'f00d', model, tools: {}, instructions: '' });

function logOf(...checkpoints: readonly Checkpoint[]): LogEvent[] {
  const events = checkpoints.map((checkpoint, index) => nextEvent(checkpoints[index - 1], checkpoint));
  return JSON.parse(JSON.stringify(events)) as LogEvent[];
}

describe('the model of a save', () => {
  const usage = addModelCall(emptyUsage, 'large-model-2026', call);

  it('is left out when it is the one of the fingerprint, and comes back', () => {
    const checkpoint = aCheckpoint({ usage, fingerprint: fingerprintOf('large-model-2026') });
    const events = logOf(checkpoint);
    expect(JSON.stringify(events[0]?.u)).not.toContain('large-model-2026');
    expect(foldEvents(events)).toEqual(checkpoint);
  });

  it('is named when the fingerprint names another one, or none', () => {
    for (const checkpoint of [
      aCheckpoint({ usage }),
      aCheckpoint({ usage, fingerprint: fingerprintOf('small') }),
    ]) {
      expect(foldEvents(logOf(checkpoint))).toEqual(checkpoint);
    }
  });

  it('stays what it was when the fingerprint changes under it', () => {
    const before = aCheckpoint({ usage, fingerprint: fingerprintOf('large-model-2026') });
    const after = aCheckpoint({ usage, fingerprint: fingerprintOf('small') });
    const events = logOf(before, after, before);
    expect(foldEvents(events.slice(0, 1))).toEqual(before);
    expect(foldEvents(events.slice(0, 2))).toEqual(after);
    expect(foldEvents(events)).toEqual(before);
    expect(headerFromEvent(events[1]?.f ?? {}, events[1] as LogEvent)).toEqual(checkpointHeader(after));
  });

  it('is told apart from a run that made no call', () => {
    const checkpoint = aCheckpoint({ fingerprint: fingerprintOf('large-model-2026') });
    expect(foldEvents(logOf(checkpoint))).toEqual(checkpoint);
  });
});
