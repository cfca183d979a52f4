/** For every history, limit of either store and place where a copy was cut off, the next copy writes just what is missing. */
import { array, assert, constantFrom, integer, property } from 'fast-check';
import type { Checkpoint } from '@lousho/contract';
import { expect, it } from 'vitest';
import { countCopied, isCopied } from '../src/missing-saves.ts';
import { checkpointComparison } from '../src/same-record.ts';
import { inProgress } from './support/records.ts';

const limit = integer({ min: 1, max: 8 });
/** Few different ones: saves that are just the same are usual. */
const runs = array(constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 8 });
const states = new Map(['a', 'b', 'c', 'x'].map((name) => [name, inProgress({ runId: name })]));

it('continues a copy that was cut off after any save', () => {
  assert(
    property(runs, limit, integer({ min: 0, max: 8 }), (names, targetLimit, written) => {
      const source = savesOf(names);
      const target = source.slice(0, written).slice(-targetLimit);
      const count = countCopied(source, target, checkpointComparison());
      if (count === undefined) return expect.fail('it was cut off, and nothing else');
      const after = [...target, ...source.slice(count)].slice(-targetLimit);
      expect(namesOf(after)).toEqual(names.slice(-targetLimit).slice(-after.length));
      expect(isCopied(source, after, checkpointComparison())).toBe(true);
      // Where nothing was dropped there is no doubt.
      if (target.length < targetLimit) expect(count).toBe(Math.min(written, source.length));
    }),
  );
});

it('brings what the source did since, although it has dropped what it had', () => {
  assert(
    property(runs, runs, limit, limit, (before, since, sourceLimit, targetLimit) => {
      const target = savesOf(before).slice(-sourceLimit).slice(-targetLimit);
      const source = savesOf([...before, ...since]).slice(-sourceLimit);
      const count = countCopied(source, target, checkpointComparison());
      // Nothing is left that both know: then it is another run as far as anybody can tell.
      if (count === undefined) return;
      const after = [...target, ...source.slice(count)].slice(-targetLimit);
      expect(isCopied(source, after, checkpointComparison())).toBe(true);
    }),
  );
});

it('never continues a run that is another one', () => {
  assert(
    property(runs, runs, (names, others) => {
      const target = savesOf([...others, 'x']);
      expect(countCopied(savesOf(names), target, checkpointComparison())).toBeUndefined();
    }),
  );
});

/** Fresh objects, as each store gives its own. */
function savesOf(names: readonly string[]): readonly Checkpoint[] {
  return names.map((name) => structuredClone(states.get(name) as Checkpoint));
}

function namesOf(saves: readonly Checkpoint[]): readonly string[] {
  return saves.map(({ runId }) => runId);
}
