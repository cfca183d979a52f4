/** Every promise of a store in docs/contract.md has a rule with the same sentence, or a place where it is tested instead. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { conformanceRules } from '../../src/conformance.ts';
import { processRules } from '../../src/node/process-rules.ts';

const docs = readFileSync(new URL('../../../../docs/contract.md', import.meta.url), 'utf8');
const promises = new Map(
  [...docs.matchAll(/^- \*\*([A-Z]\d+)\*\* (.*)$/gm)].map(([, number = '', sentence = '']) => [
    number,
    sentence,
  ]),
);
const promised = ({ id }: { readonly id: string }): boolean => !id.startsWith('model/');

/** What one process cannot see. `@lousho/testing/node` asks for it. */
const NEED_PROCESSES = ['C7', 'C8'];
/**
 * Parts of promises that have a rule and that this suite cannot reach through a store that somebody else opened.
 * - C7 `claims.durable: 'power'`: nobody can cut the power from here. The rule kills the process.
 * - C15: records in a store's own older format are fixtures in the tests of that store.
 * - H3 `historyMaxBytes` and `historyLimit: 0`: options of the bundled stores, in their tests.
 * - Z8: that a newer contract is refused is up to `createAgent`, in the tests of core.
 */

describe('the rules', () => {
  it('are there for every promise that one process can see', () => {
    const ids = conformanceRules.filter(promised).map(({ id }) => id);
    expect(ids).toEqual([...promises.keys()].filter((number) => !NEED_PROCESSES.includes(number)));
  });

  it('are there for the promises that need processes', () => {
    expect(processRules.map(({ id }) => id)).toEqual(expect.arrayContaining(NEED_PROCESSES));
  });

  it('have the sentence of the promise word for word', () => {
    for (const { id, rule } of [...conformanceRules.filter(promised), ...processRules])
      expect(rule, id).toBe(promises.get(id));
  });

  it('have names of their own, in groups', () => {
    const names = [...conformanceRules, ...processRules].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z]+\/[a-z0-9-]+$/);
  });

  it('are asked of a store that claims everything, apart from the weaker ones', () => {
    const claims = {
      leases: 'atomic',
      history: true,
      list: true,
      durable: 'power',
      consistency: 'strong',
    } as const;
    expect(conformanceRules.filter(({ needs }) => !needs(claims)).map(({ id }) => id)).toEqual([
      'W1',
      'W2',
      'W3',
    ]);
  });

  it('ask a store of three methods for less', () => {
    const claims = {
      leases: 'none',
      history: false,
      list: false,
      durable: 'process',
      consistency: 'strong',
    } as const;
    const asked = conformanceRules.filter(({ needs }) => needs(claims)).map(({ id }) => id);
    expect(asked.join(' ')).toBe(
      'C1 C2 C3 C4 C5 C6 C9 C10 C11 C12 C13 C14 C15 C16 C17 ' +
        'A1 A2 A3 A4 A5 A6 A7 A8 A9 S1 S2 S3 S4 S5 S6 S7 S8 S9 Z1 Z2 Z3 Z4 Z5 Z6 Z7 Z8 ' +
        'model/checkpoints model/approvals model/sessions',
    );
  });
});
