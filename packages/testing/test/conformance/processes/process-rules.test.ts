/** The rules that need processes, on a small store of files: correct, and wrong in ways that one process cannot see. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { StoreSubject } from '../../../src/conformance.ts';
import { registerProcessConformance } from '../../../src/node.ts';
import { processRules } from '../../../src/node/process-rules.ts';
import { runProcessRule } from '../../../src/node/run-process-rule.ts';

function fileSubject(flaw?: string): StoreSubject {
  return {
    name: flaw === undefined ? 'files' : `a store that ${flaw}`,
    claims: { leases: 'atomic', history: true, list: false, durable: 'process', consistency: 'strong' },
    async createStorage() {
      const folder = await mkdtemp(path.join(tmpdir(), 'lousho-processes-'));
      const module = fileURLToPath(new URL('./file-store.mjs', import.meta.url));
      return {
        open: async () => {
          throw new Error('Only child processes open this storage.');
        },
        destroy: () => rm(folder, { recursive: true, force: true }),
        childProcess: { module, options: flaw === undefined ? { folder } : { folder, flaw } },
      };
    },
  };
}

registerProcessConformance(fileSubject(), { describe, it });

describe('a store over processes that', () => {
  // Each is asked for the rules near its flaw: all of them take a minute.
  it.each([
    { flaw: 'acknowledges first', asked: ['C4', 'C7', 'C8', 'L1'], breaks: ['C4', 'C7'] },
    { flaw: 'writes in place', asked: ['C4', 'C7', 'C8'], breaks: ['C7', 'C8'] },
    { flaw: 'overwrites', asked: ['C4', 'C7', 'C8', 'L1', 'A8', 'S4'], breaks: ['L1', 'A8', 'S4'] },
    { flaw: 'checks before it writes', asked: ['C4', 'L1', 'F3'], breaks: ['F3'] },
    { flaw: 'notes what it refuses', asked: ['L1', 'F2'], breaks: ['F2'] },
    { flaw: 'trusts its memory', asked: ['L1', 'F2'], breaks: ['F2'] },
    { flaw: 'never frees a lease', asked: ['L1', 'L3'], breaks: ['L3'] },
  ])('$flaw breaks $breaks', { timeout: 120_000 }, async ({ flaw, asked, breaks }) => {
    const broken: string[] = [];
    for (const rule of processRules.filter(({ id }) => asked.includes(id))) {
      const { outcome } = await runProcessRule(fileSubject(flaw), rule);
      if (outcome === 'failed') broken.push(rule.id);
    }
    expect(broken.sort()).toEqual([...breaks].sort());
  });
});

describe('a subject', () => {
  const rule = processRules.find(({ id }) => id === 'C4');

  it('without childProcess is not asked', async () => {
    const subject = fileSubject();
    const storage = { open: async () => ({}), destroy: async () => undefined };
    if (rule === undefined) throw new Error('there is a rule C4');
    const { outcome, reason } = await runProcessRule(
      { ...subject, createStorage: async () => storage },
      rule,
    );
    expect([outcome, reason]).toEqual(['skipped', 'the subject has no childProcess']);
  });

  it('whose module cannot be imported is told why, where colours are forced too', async () => {
    vi.stubEnv('FORCE_COLOR', '1');
    onTestFinished(() => void vi.unstubAllEnvs());
    if (rule === undefined) throw new Error('there is a rule C4');
    const storage = {
      open: async () => ({}),
      destroy: async () => undefined,
      childProcess: { module: '/nowhere/store.mjs', options: {} },
    };
    const { failure } = await runProcessRule({ ...fileSubject(), createStorage: async () => storage }, rule);
    expect(failure?.message).toContain('expected: "a child process that opens the store"');
    expect(failure?.message).toContain('ERR_MODULE_NOT_FOUND');
  });
});
