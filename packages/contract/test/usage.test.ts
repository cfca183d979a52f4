/** What model calls cost: nothing counted twice, and what is unknown stays unknown. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addDelegated,
  addModelCall,
  emptyUsage,
  isDeepFrozen,
  sumUsage,
  type ModelUsage,
  type RunUsage,
} from '../src/index.ts';

const COUNTS = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'reasoningTokens',
  'modelCalls',
] as const;

function call(over: Partial<ModelUsage> = {}): ModelUsage {
  const { byModel: _models, ...nothing } = emptyUsage;
  return { ...nothing, modelCalls: 1, ...over };
}

const modelCall: fc.Arbitrary<ModelUsage> = fc
  .tuple(
    fc.nat({ max: 1_000 }),
    fc.nat({ max: 1_000 }),
    fc.constantFrom(undefined, 0, 0.25, 2),
    fc.constantFrom(undefined, true as const),
  )
  .map(([inputTokens, outputTokens, costUsd, estimated]) =>
    call({
      inputTokens,
      outputTokens,
      totalTokens: inputTokens + outputTokens,
      cachedInputTokens: inputTokens >> 1,
      cacheWriteTokens: inputTokens >> 2,
      reasoningTokens: outputTokens >> 2,
      ...(costUsd === undefined ? {} : { costUsd }),
      ...(estimated === undefined ? {} : { estimated }),
    }),
  );
const modelId = fc.constantFrom('big', 'small', '__proto__', 'constructor');
const calls = fc.array(fc.tuple(modelId, modelCall), { maxLength: 8 });
type Calls = readonly (readonly [string, ModelUsage])[];

function usageOf(made: Calls): RunUsage {
  return made.reduce((usage, [id, spent]) => addModelCall(usage, id, spent), emptyUsage);
}

function expectToBeTotalsOf(usage: RunUsage, made: Calls): void {
  for (const count of COUNTS)
    expect(usage[count]).toBe(made.reduce((sum, [, spent]) => sum + spent[count], 0));
  expect(Object.keys(usage.byModel).sort()).toEqual([...new Set(made.map(([id]) => id))].sort());
  for (const count of COUNTS)
    expect(Object.values(usage.byModel).reduce((sum, spent) => sum + spent[count], 0)).toBe(usage[count]);
  const costs = made.map(([, spent]) => spent.costUsd);
  const expected = costs.includes(undefined)
    ? undefined
    : costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0);
  if (made.length > 0) expect(usage.costUsd).toBe(expected);
  expect(usage.estimated).toBe(made.some(([, spent]) => spent.estimated) ? true : undefined);
}

describe('addModelCall', () => {
  it('gives totals that are the sum of the calls, and of the models', () => {
    fc.assert(fc.property(calls, (made) => expectToBeTotalsOf(usageOf(made), made)));
  });

  it('keeps what sub-agents spent', () => {
    const usage = addModelCall(addDelegated(emptyUsage, usageOf([['small', call()]])), 'big', call());
    expect(usage.delegated).toMatchObject({ runs: 1, modelCalls: 1 });
    expect(usage.modelCalls).toBe(2);
  });

  it('changes nothing that was there, and gives a frozen value', () => {
    const before = usageOf([['big', call({ inputTokens: 5, totalTokens: 5 })]]);
    const text = JSON.stringify(before);
    expect(isDeepFrozen(addModelCall(before, 'big', call()))).toBe(true);
    expect(JSON.stringify(before)).toBe(text);
    expect(isDeepFrozen(emptyUsage)).toBe(true);
  });
});

describe('addDelegated', () => {
  it('counts every call of lead and sub-agents once, however deep they are', () => {
    fc.assert(
      fc.property(calls, calls, calls, (ofLead, ofChild, ofGrandchild) => {
        const child = addDelegated(usageOf(ofChild), usageOf(ofGrandchild));
        const lead = addDelegated(usageOf(ofLead), child);
        expectToBeTotalsOf(lead, [...ofLead, ...ofChild, ...ofGrandchild]);
        expect(lead.delegated?.modelCalls).toBe(ofChild.length + ofGrandchild.length);
        expect(lead.delegated?.runs).toBe(1);
        expect(child.delegated?.modelCalls).toBe(ofGrandchild.length);
      }),
    );
  });

  it('adds up several sub-agents', () => {
    const one = usageOf([['small', call({ costUsd: 1 })]]);
    const usage = addDelegated(addDelegated(emptyUsage, one), one);
    expect(usage.delegated).toMatchObject({ runs: 2, modelCalls: 2, costUsd: 2 });
    expect(usage.byModel.small).toMatchObject({ modelCalls: 2, costUsd: 2 });
  });

  it('takes a spend of which only the total is known', () => {
    const usage = addDelegated(emptyUsage, call({ inputTokens: 3, totalTokens: 3 }));
    expect(usage).toMatchObject({
      inputTokens: 3,
      modelCalls: 1,
      byModel: {},
      delegated: { runs: 1, inputTokens: 3 },
    });
  });
});

describe('costs', () => {
  it('are unknown as soon as one call has none, and stay so', () => {
    const known = usageOf([['big', call({ costUsd: 0.5 })]]);
    expect(known.costUsd).toBe(0.5);
    const unknown = addModelCall(known, 'small', call());
    expect(unknown).not.toHaveProperty('costUsd');
    expect(unknown.byModel.big?.costUsd).toBe(0.5);
    expect(unknown.byModel.small).not.toHaveProperty('costUsd');
    expect(addModelCall(unknown, 'big', call({ costUsd: 1 }))).not.toHaveProperty('costUsd');
  });

  it('of 0 are known costs', () => {
    expect(usageOf([['local', call({ costUsd: 0 })]]).costUsd).toBe(0);
  });

  it('of tokens without a counted call are unknown too', () => {
    const old = { ...call({ inputTokens: 9, totalTokens: 9 }), modelCalls: 0 };
    expect(sumUsage(old, call({ costUsd: 1 }))).not.toHaveProperty('costUsd');
    expect(sumUsage({ ...old, inputTokens: 0, totalTokens: 0 }, call({ costUsd: 1 })).costUsd).toBe(1);
  });
});

describe('sumUsage', () => {
  it('does not depend on the order, and nothing is its zero', () => {
    fc.assert(
      fc.property(modelCall, modelCall, (a, b) => {
        expect(sumUsage(a, b)).toEqual(sumUsage(b, a));
        expect(sumUsage(a, call({ modelCalls: 0 }))).toEqual(a);
      }),
    );
  });
});
