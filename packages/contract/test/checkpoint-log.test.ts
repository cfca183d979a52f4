/** The codec's promise: whatever happens to a run, its log gives every saved state back, and the header without reading the log. */
import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkpointHeader,
  foldEvents,
  headerFromEvent,
  historyOf,
  nextEvent,
  parseCheckpoint,
  type Checkpoint,
  type LogEvent,
} from '../src/index.ts';
import { stored } from './support/checkpoints.ts';
import { anyHistory, knownBefore, type Save } from './support/evolutions.ts';

const RUNS = { numRuns: 1_000 };

/** The log as a store keeps it: one JSON text a save. */
function logOf(saves: readonly Save[]): LogEvent[] {
  return saves.map(({ checkpoint }, index) => stored(nextEvent(knownBefore(saves, index), checkpoint)));
}

function parse(state: unknown): Checkpoint {
  return parseCheckpoint(state, 'a');
}

describe('the checkpoint log', () => {
  it('gives back the state of every save at every cut', () => {
    fc.assert(
      fc.property(anyHistory(), (saves) => {
        const log = logOf(saves);
        for (const [index, { checkpoint }] of saves.entries()) {
          const state = foldEvents(log.slice(0, index + 1));
          deepStrictEqual(state, stored(checkpoint));
          expect(parse(state)).toBe(state);
        }
      }),
      RUNS,
    );
  });

  it('gives the saved states, newest first, as the history', () => {
    fc.assert(
      fc.property(anyHistory(), fc.oneof(fc.nat({ max: 15 }), fc.constant(Infinity)), (saves, limit) => {
        const states = saves.map(({ checkpoint }) => stored(checkpoint)).reverse();
        const history = historyOf(logOf(saves), limit, parse);
        deepStrictEqual(
          history,
          states.slice(0, limit).map((checkpoint) => ({
            step: checkpoint.stepIndex,
            savedAt: checkpoint.savedAt,
            status: checkpoint.status,
            checkpoint,
          })),
        );
      }),
      RUNS,
    );
  });

  it('tells the header from the newest facts and the newest event alone', () => {
    fc.assert(
      fc.property(anyHistory(), (saves) => {
        const log = logOf(saves);
        let facts: LogEvent['f'];
        for (const [index, event] of log.entries()) {
          facts = event.f ?? facts;
          deepStrictEqual(headerFromEvent(facts!, event), checkpointHeader(stored(saves[index]!.checkpoint)));
        }
      }),
      RUNS,
    );
  });

  it('is written the same by a process that loaded the state and by the one that saved it', () => {
    fc.assert(
      fc.property(anyHistory(), (saves) => {
        const written = logOf(saves.map((save) => ({ ...save, known: 'same objects' })));
        const continued = logOf(saves.map((save) => ({ ...save, known: 'loaded again' })));
        deepStrictEqual(continued, written);
      }),
      { numRuns: 500 },
    );
  });

  it('can be begun anew at any save: what was before is void', () => {
    fc.assert(
      fc.property(anyHistory(), fc.nat(), (saves, at) => {
        const cut = at % saves.length;
        const log = logOf(saves);
        const base = stored(nextEvent(undefined, saves[cut]!.checkpoint));
        deepStrictEqual(foldEvents([base, ...log.slice(cut + 1)]), stored(saves.at(-1)!.checkpoint));
      }),
      { numRuns: 500 },
    );
  });

  it('is tested with histories that use every part of the format', () => {
    const events = fc.sample(anyHistory(), { numRuns: 500, seed: 1 }).flatMap(logOf);
    const used = new Set(events.flatMap((event) => Object.keys(event)));
    expect([...used].sort()).toEqual([...'IRbfhikmnrstuvwz']);
    const uses = (holds: (event: LogEvent) => boolean): boolean => events.some(holds);
    expect(uses((event) => typeof event.t === 'string')).toBe(true);
    expect(uses((event) => 'whole' in event.u)).toBe(true);
    expect(uses((event) => !('whole' in event.u) && event.u.length === 4)).toBe(true);
    expect(uses((event) => event.m?.some((item) => typeof item === 'string') === true)).toBe(true);
    expect(uses((event) => event.w?.length === 0)).toBe(true);
    expect(uses((event) => event.k !== undefined && event.m !== undefined)).toBe(true);
    expect(uses((event) => event.v?.approvalIds !== undefined)).toBe(true);
  });

  it('has no state before its first event', () => {
    expect(foldEvents([])).toBeNull();
    expect(historyOf([], 5, parse)).toEqual([]);
  });
});
