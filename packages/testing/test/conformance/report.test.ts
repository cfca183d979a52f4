/** What a store author reads. */
import type { AgentStore, Checkpoint } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import {
  check,
  ConformanceFailure,
  registerConformance,
  type StoreSubject,
  type TestRunner,
} from '../../src/conformance.ts';
import { runRule } from '../../src/conformance/run-rule.ts';
import { allRules } from '../../src/conformance/rules.ts';
import { plainClaims } from './plain-store.ts';
import { plainSubject, type Plant } from './subjects.ts';

const merging: Plant = (_right, medium) => ({
  checkpoints: {
    save: async (id, checkpoint) => {
      const before = JSON.parse(medium.latest.get(id) ?? '{}') as Checkpoint;
      medium.write(
        id,
        JSON.stringify({ ...(before.principal && { principal: before.principal }), ...checkpoint }),
      );
    },
  },
});
/** Three methods, no claims, no approvals, no sessions, no end. */
const tinySubject: StoreSubject = {
  name: 'tiny',
  claims: { leases: 'none', history: false, list: false, durable: 'memory', consistency: 'strong' },
  async createStorage(clock) {
    const storage = await plainSubject('tiny').createStorage(clock);
    return {
      async open(): Promise<AgentStore> {
        const { checkpoints } = await storage.open();
        if (checkpoints === undefined) throw new Error('the plain store has checkpoints');
        return {
          checkpoints: {
            save: (id, checkpoint) => checkpoints.save(id, checkpoint),
            load: (id) => checkpoints.load(id),
            delete: (id, options) => checkpoints.delete(id, options),
          },
        };
      },
      destroy: () => storage.destroy(),
    };
  },
};

describe('a failure', () => {
  it('prints the promise, what was expected, what happened, where they differ, a hint, and where to read on', async () => {
    const { results } = await check(plainSubject('my-store', merging), { only: ['C5'] });
    const { failure } = results[0] ?? {};
    expect(failure).toBeInstanceOf(ConformanceFailure);
    expect(failure).toMatchObject({
      name: 'ConformanceFailure',
      rule: { id: 'C5' },
      hint: expect.stringContaining('merge'),
    });
    const lines = failure?.message.split('\n') ?? [];
    expect(lines).toHaveLength(6);
    expect(lines[0]).toBe(
      'my-store breaks C5 (checkpoints/replaced-whole): ' +
        '`save` replaces the checkpoint whole: no field of an earlier one is left.',
    );
    expect(lines[1]).toMatch(/^ {2}expected: \{"version":1,"runId":.* \.\.\. .*\}$/);
    expect(lines[2]).toMatch(/^ {2}actual: {3}\{"principal":\{"id":"user-7"\},.* \.\.\. .*\}$/);
    expect(lines[3]).toBe('  differs:  at principal: expected nothing, got {"id":"user-7"}');
    expect(lines[4]).toMatch(/^ {2}hint: {5}Do not merge into what is stored: .*\.$/);
    expect(lines[5]).toBe('  docs:     docs/contract.md#checkpoints');
  });

  it('of a model prints the seed and the commands', async () => {
    const { results } = await check(
      plainSubject('my-store', ({ approvals }) => ({
        approvals: { delete: (id) => approvals.delete(id), list: async () => [] },
      })),
      {
        only: ['model/approvals'],
      },
    );
    const message = results[0]?.failure?.message ?? '';
    expect(message).toMatch(/^my-store breaks model\/approvals: Whatever the order/);
    expect(message).toMatch(/Seed 1, command \d+, the last of these:\n {12}1\. h\d\./);
    expect(message).toMatch(/\d+\. h\d\.list\(.*\)\n {2}docs: {5}docs\/contract\.md#what-a-store-promises$/);
  });

  it('says which call threw something that the contract does not name', async () => {
    const broken = plainSubject('my-store', () => ({
      checkpoints: {
        load: async () => {
          throw new TypeError('no such table: runs');
        },
      },
    }));
    const { results } = await check(broken, { only: ['C4'] });
    expect(results[0]?.failure?.message).toContain('actual:   TypeError: no such table: runs');
    expect(results[0]?.failure?.hint).toContain('C3');
    expect((results[0]?.failure?.cause as Error).message).toBe('no such table: runs');
  });
});

describe('check', () => {
  it('runs the rules, names and groups that are asked for, in the order of the contract', async () => {
    const { results, subject, claims, passed } = await check(plainSubject('plain'), {
      only: ['fencing', 'leases/renew', 'C4'],
    });
    expect(results.map(({ rule, outcome }) => [rule.id, outcome])).toEqual(
      ['C4', 'L8', 'F1', 'F2', 'F3', 'F4'].map((id) => [id, 'passed']),
    );
    expect({ subject, claims, passed }).toEqual({ subject: 'plain', claims: plainClaims, passed: true });
    for (const { durationMs } of results) expect(durationMs).toBeGreaterThan(0);
  });

  it('refuses a rule that does not exist', async () => {
    await expect(check(plainSubject('plain'), { only: ['L99'] })).rejects.toMatchObject({
      code: 'LOUSHO_CONFIG_INVALID',
    });
  });

  it('asks a store of three methods only for what it has', async () => {
    const report = await check(tinySubject);
    expect(report.passed).toBe(true);
    const passed = report.results.filter(({ outcome }) => outcome === 'passed').map(({ rule }) => rule.id);
    expect(passed.join(' ')).toBe('C1 C2 C3 C4 C5 C6 C9 C10 C11 C12 C13 C16 C17 Z1 Z8 model/checkpoints');
    const reasons = new Set(
      report.results.map(({ reason }) => reason).filter((reason) => reason !== undefined),
    );
    expect([...reasons].sort()).toEqual([
      'not claimed: atomic leases',
      'not claimed: atomic leases and strong consistency',
      'not claimed: best-effort leases',
      'not claimed: durability beyond memory',
      'not claimed: eventual consistency',
      'not claimed: history',
      'not claimed: leases',
      'not claimed: leases that outlive a process',
      'not claimed: list',
      'the store has no Symbol.asyncDispose',
      'the store has no approvals',
      'the store has no close',
      'the store has no prune',
      'the store has no sessions',
      'the subject has no corrupt(id)',
    ]);
  });

  it('finds methods that are there and not claimed', async () => {
    const subject = { ...plainSubject('plain'), claims: { ...plainClaims, history: false } };
    const { results } = await check(subject, { only: ['Z1'] });
    expect(results[0]?.failure?.message).toContain('differs:  at history: expected false, got true');
  });

  it('reports a store that cannot be opened, closed or destroyed, and never rejects', async () => {
    const right = plainSubject('my-store');
    const failing = (what: 'create' | 'open' | 'destroy'): StoreSubject => ({
      ...right,
      async createStorage(clock) {
        if (what === 'create') throw new Error('no server');
        const storage = await right.createStorage(clock);
        const fail = async (): Promise<never> => {
          throw new Error(`cannot ${what}`);
        };
        return { ...storage, [what]: fail };
      },
    });
    for (const [what, message] of [
      ['create', 'no server'],
      ['open', 'cannot open'],
      ['destroy', 'cannot destroy'],
    ] as const) {
      const { passed, results } = await check(failing(what), { only: ['C11'] });
      expect(passed).toBe(false);
      expect(results[0]?.failure?.message).toContain(`actual:   Error: ${message}`);
    }
    const unclosable = plainSubject('my-store', () => ({
      store: { close: async () => Promise.reject(new Error('no')) },
    }));
    expect((await check(unclosable, { only: ['C11', 'Z5'] })).results.map(({ outcome }) => outcome)).toEqual([
      'passed',
      'failed',
    ]);
  });

  it('reports a store that never answers, after a bounded time', async () => {
    const rule = allRules.find(({ id }) => id === 'C4');
    const never = (): Promise<never> => new Promise(() => undefined);
    const hanging = plainSubject('my-store', () => ({ checkpoints: { load: never } }));
    if (rule === undefined) throw new Error('there is a rule C4');
    const { outcome, failure } = await runRule(hanging, rule, 50);
    expect(outcome).toBe('failed');
    expect(failure).toMatchObject({
      expected: 'an answer within 0.05 s',
      actual: 'a call of the store did not settle',
    });
    const neverEnding = plainSubject('my-store', () => ({ store: { close: never } }));
    expect((await runRule(neverEnding, rule, 50)).failure?.hint).toBe('Does a handle never close?');
  });
});

describe('registerConformance', () => {
  interface Registered {
    readonly name: string;
    readonly body?: (...args: readonly unknown[]) => Promise<void>;
  }
  function recordingRunner() {
    const groups: string[] = [];
    const tests: Registered[] = [];
    const skipped: string[] = [];
    const it = (name: string, body: () => Promise<void>): void => void tests.push({ name, body });
    const runner: TestRunner = {
      describe: (name, body) => {
        groups.push(name);
        body();
      },
      it: Object.assign(it, { skip: (name: string) => void skipped.push(name) }),
    };
    return { groups, tests, skipped, runner };
  }

  it('makes one test a rule in groups, and skips with a title that says why', () => {
    const { groups, tests, skipped, runner } = recordingRunner();
    registerConformance(tinySubject, runner);
    expect(groups).toEqual([
      ...[
        'tiny keeps the store contract',
        'checkpoints',
        'leases',
        'fencing',
        'history',
        'list',
        'approvals',
      ],
      ...['sessions', 'lifecycle', 'weaker', 'model'],
    ]);
    expect(tests.length + skipped.length).toBe(allRules.length);
    expect(tests[3]?.name).toBe(
      'C4 checkpoints/visible-on-every-handle: After `save` resolves, every handle on the same storage loads this checkpoint.',
    );
    expect(skipped).toContain(
      'L11 leases/released-is-free: A released lease is free at once. [not claimed: leases]',
    );
  });

  it('makes tests that reject with the failure', async () => {
    const { tests, runner } = recordingRunner();
    registerConformance(plainSubject('my-store', merging), runner);
    const find = (id: string) => tests.find(({ name }) => name.startsWith(`${id} `));
    await expect(find('C5')?.body?.()).rejects.toBeInstanceOf(ConformanceFailure);
    await expect(find('C4')?.body?.()).resolves.toBeUndefined();
  });

  it('skips in the runner what a store turns out not to have, where the runner can', async () => {
    const { tests, runner } = recordingRunner();
    registerConformance(tinySubject, runner);
    const test = tests.find(({ name }) => name.startsWith('A2 '));
    const reasons: unknown[] = [];
    const context = Object.assign(() => undefined, { skip: (reason: unknown) => void reasons.push(reason) });
    await test?.body?.(context);
    await test?.body?.call(context);
    // Mocha and jest would take a body with a parameter for one that calls back.
    expect(test?.body).toHaveLength(0);
    await test?.body?.();
    expect(reasons).toEqual(['the store has no approvals', 'the store has no approvals']);
  });

  it('says when a rule really waits', () => {
    const { groups, runner } = recordingRunner();
    registerConformance({ ...tinySubject, clock: 'store' }, runner);
    expect(groups[0]).toBe('tiny keeps the store contract (by its own clock: rules about time really wait)');
  });
});
