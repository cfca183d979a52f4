/**
 * A store of somebody else, outside of this repository, with what npm would publish: it is asked for what it claims in the runner that its
 * author has, and one with a race is told so in a sentence.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readGuide, writeGuideFiles } from './support/guide.ts';
import { theirStores } from './support/their-stores.ts';
import { Tarballs, installIfCached, ownEnv } from './support/tarballs.ts';

const tarballs = new Tarballs('lousho-third-party-');
let project: string;

beforeAll(async () => {
  tarballs.pack(['contract', 'testing']);
  project = tarballs.install('their-store', ['contract', 'testing'], ['zod', 'vitest']);
  const { files } = await readGuide();
  await writeGuideFiles(files, project);
  for (const [name, text] of Object.entries(theirFiles)) fs.writeFileSync(path.join(project, name), text);
}, 180_000);
afterAll(() => tarballs.remove());

it('has nothing of this repository but the two packages', () => {
  const installed = fs.readdirSync(path.join(project, 'node_modules', '@lousho'));
  expect(installed.sort()).toEqual(['contract', 'testing']);
  for (const name of installed)
    expect(fs.realpathSync(path.join(project, 'node_modules', '@lousho', name))).toContain(
      fs.realpathSync(tarballs.folder),
    );
});

/* ── Runners ── */

interface Outcome {
  readonly status: number | null;
  readonly output: string;
}
interface Runner {
  /** What its author installs; nothing: it comes with Node, or was installed with the project. */
  readonly install?: string;
  readonly imports: string;
  /** It can only skip a test before it begins: what shows later, such as a part that the store lacks, counts as passed. */
  readonly skipsEarly?: true;
  readonly command: (file: string) => readonly string[];
}

const runners: { readonly [name: string]: Runner } = {
  vitest: {
    imports: `import { describe, it } from 'vitest';`,
    command: (file) => ['node_modules/vitest/vitest.mjs', 'run', '--root', '.', file],
  },
  'node:test': {
    imports: `import { describe, it } from 'node:test';`,
    command: (file) => ['--test', '--test-reporter=spec', file],
  },
  mocha: {
    install: 'mocha@12.0.3',
    imports: `import { describe, it } from 'mocha';`,
    command: (file) => ['node_modules/mocha/bin/mocha.js', '--timeout', '60000', file],
  },
  jest: {
    install: 'jest@30.5.2',
    imports: `import { describe, it } from '@jest/globals';`,
    skipsEarly: true,
    command: (file) => [
      ...['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--rootDir', '.'],
      ...['--testMatch', `**/${file}`],
    ],
  },
};

const theirFiles: { readonly [name: string]: string } = {
  // A project of its own: else Vitest and Jest take what they find above.
  'vitest.config.mjs': `export default { test: { include: ['**/*.suite.mjs'] } };`,
  'jest.config.mjs': `export default { moduleFileExtensions: ['mjs', 'js', 'json'], transform: {} };`,
  ...theirStores,
  ...Object.fromEntries(
    Object.entries(runners).flatMap(([runner, { imports }]) =>
      ['subject', 'three-methods-subject', 'racy-subject'].map((subject) => [
        suiteName(runner, subject),
        `${imports}
         import { registerConformance } from '@lousho/testing/conformance';
         import { subject } from './${subject}.mjs';
         registerConformance(subject, { describe, it });`,
      ]),
    ),
  ),
};

function suiteName(runner: string, subject: string): string {
  return `${runner.replace(':', '-')}-${subject}.suite.mjs`;
}

function run(runner: string, subject: string): Outcome {
  const command = runners[runner]?.command(suiteName(runner, subject)) ?? [];
  return node(command);
}

function node(args: readonly string[]): Outcome {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: project,
    encoding: 'utf8',
    // Colours would stand inside of the sentences.
    env: { ...ownEnv(), NO_COLOR: '1', FORCE_COLOR: '0' },
    maxBuffer: 64 * 1024 * 1024,
  });
  return { status, output: stdout + stderr };
}

describe.each(Object.entries(runners))('%s', (name, { install, skipsEarly }) => {
  const oneWinner = 'Of owners that ask at one moment for a free lease, exactly one gets it.';
  let isInstalled = true;
  beforeAll(() => {
    if (install !== undefined) isInstalled = installIfCached(project, install);
  }, 120_000);

  it('passes a store that keeps what it claims', (context) => {
    if (!isInstalled) context.skip(`${install} is not on this machine`);
    const { status, output } = run(name, 'subject');
    expect(status, output).toBe(0);
    expect(countOf(output, 'passed')).toBeGreaterThan(65);
  });

  it('asks a store of three methods for what three methods can promise', (context) => {
    if (!isInstalled) context.skip(`${install} is not on this machine`);
    const { status, output } = run(name, 'three-methods-subject');
    expect(status, output).toBe(0);
    expect([countOf(output, 'passed'), countOf(output, 'skipped')]).toEqual(skipsEarly ? [44, 34] : [17, 61]);
  });

  it('fails a store with a race, and says which promise is broken', (context) => {
    if (!isInstalled) context.skip(`${install} is not on this machine`);
    const { status, output } = run(name, 'racy-subject');
    expect(status, output).not.toBe(0);
    expect(output).toContain(`racy store breaks L1 (leases/one-winner): ${oneWinner}`);
  });
});

/** As the runners count: `17 passed`, `ℹ pass 17`, `17 passing`. A test that could not run is skipped or pending. */
function countOf(output: string, what: 'passed' | 'skipped'): number {
  const words = what === 'passed' ? 'pass(?:ed|ing)?' : 'skipped|pending';
  const summaries = [
    new RegExp(`^ *Tests:? .*?(\\d+) (?:${words})`, 'm'),
    new RegExp(`^ℹ (?:${words}) (\\d+)`, 'm'),
    new RegExp(`^ *(\\d+) (?:${words})`, 'm'),
  ];
  for (const summary of summaries) {
    const count = summary.exec(output)?.[1];
    if (count !== undefined) return Number(count);
  }
  return Number.NaN;
}

it('fails a store that claims more than it has', () => {
  const { status, output } = node(['check-boastful.mjs']);
  expect(status, output).toBe(0);
  expect(output).toContain(
    'false boastful store breaks Z1 (lifecycle/claims-and-methods-agree): Claims and methods agree',
  );
});
