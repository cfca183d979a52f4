/** The promises of stores are the same sentences in the doc comments that store authors read and in docs/contract.md. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const docs = readFileSync(new URL('../../../docs/contract.md', import.meta.url), 'utf8');
const sources = ['store', 'approval', 'session'].map((name) =>
  readFileSync(new URL(`../src/${name}.ts`, import.meta.url), 'utf8'),
);

/** `[number, sentence]` of every `C1: …` in a doc comment. */
const inSources = sources.flatMap((source) =>
  [...source.matchAll(/^\s*(?:\/\*\*|\*) ([A-Z]\d+): (.*?)(?: \*\/)?$/gm)].map(
    ([, number, sentence]) => [number ?? '', sentence ?? ''] as const,
  ),
);
/** Of every `- **C1** …`. */
const inDocs = [...docs.matchAll(/^- \*\*([A-Z]\d+)\*\* (.*)$/gm)].map(
  ([, number, sentence]) => [number ?? '', sentence ?? ''] as const,
);
/** Of every row that begins with a number, such as `| **G1** | …`. */
const inTables = [...docs.matchAll(/^\| \*\*([A-Z]\d+)\*\* +\| (.*?) +\|/gm)].map(
  ([, number, sentence]) => [number ?? '', sentence ?? ''] as const,
);
const numbersOf = (promises: readonly (readonly [string, string])[], letter: string): readonly number[] =>
  promises
    .filter(([number]) => number.startsWith(letter))
    .map(([number]) => Number(number.slice(1)))
    .sort((a, b) => a - b);

describe('the promises of stores', () => {
  it('are word for word the same in source and docs', () => {
    const byNumber = ([a]: readonly [string, string], [b]: readonly [string, string]): number =>
      a < b ? -1 : 1;
    expect([...inDocs].sort(byNumber)).toEqual([...inSources].sort(byNumber));
  });

  it.each([
    ['C', 18],
    ['L', 13],
    ['F', 4],
    ['H', 6],
    ['Q', 6],
    ['A', 9],
    ['S', 9],
    ['Z', 8],
    ['W', 3],
  ])('of the letter %s are numbered from 1 to %i without gaps, each once', (letter, last) => {
    const numbers = numbersOf(inSources, letter);
    expect(numbers).toEqual(Array.from({ length: last }, (_none, index) => index + 1));
  });
});

describe('the guarantees to users', () => {
  it.each([
    ['G', 31],
    ['N', 12],
  ])('of the letter %s are numbered from 1 to %i without gaps, each once', (letter, last) => {
    const numbers = numbersOf(inTables, letter);
    expect(numbers).toEqual(Array.from({ length: last }, (_none, index) => index + 1));
  });
});

describe('every promise', () => {
  it('is one paragraph of whole sentences', () => {
    for (const [number, sentence] of [...inDocs, ...inTables]) {
      expect(sentence, number).toMatch(/^[A-Z`].*\.$/);
      expect(sentence.length, number).toBeLessThan(260);
    }
  });

  it('that another one mentions exists', () => {
    const known = new Set([...inDocs, ...inTables].map(([number]) => number));
    const mentioned = [...docs.matchAll(/\b([CLFHQASZWGN]\d+)\b/g)].map(([number]) => number);
    expect(mentioned.filter((number) => !known.has(number))).toEqual([]);
  });
});
