/**
 * The examples (docs/examples), as their users have them: outside of the repository, over what npm would publish, run with the commands of
 * their READMEs. What a command prints stands there as its comments.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Tarballs, offerPrebuild, ownEnv } from './support/tarballs.ts';

const examplesFolder = path.resolve(import.meta.dirname, '../../../docs/examples');
/** The others are run by the tests of a package, which have what they need. */
const examples = [
  'quickstart',
  'human-approval',
  'crash-and-recover',
  'webhook-run-once',
  'third-party-store',
];
const packages = ['contract', 'executor', 'core', 'store-sqlite', 'testing'];
const others = ['zod', 'better-sqlite3', 'tsx', '@types/node'];

const tarballs = new Tarballs('lousho-examples-');
let project: string;

beforeAll(() => {
  tarballs.pack(packages);
  offerPrebuild(tarballs.folder);
  // One install for all: each example finds it above itself.
  project = tarballs.install('examples', packages, others);
  for (const name of examples)
    fs.cpSync(path.join(examplesFolder, name), path.join(project, name), { recursive: true });
}, 180_000);
afterAll(() => tarballs.remove());

describe.each(examples)('%s', (name) => {
  it('prints what its README says', () => {
    const commands = commandsOf(path.join(project, name, 'README.md'));
    expect(commands.length).toBeGreaterThan(0);
    for (const { command, prints } of commands) {
      const { status, stdout, stderr } = runIn(name, command.split(' '));
      expect(status, `${command}: ${stdout}${stderr}`).toBe(0);
      expect({ command, prints: linesOf(stdout) }).toEqual({ command, prints });
    }
  });

  it('depends on what it imports, and on nothing else', () => {
    const manifest = JSON.parse(fs.readFileSync(path.join(project, name, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    expect(Object.keys(manifest.dependencies).sort()).toEqual(importedBy(path.join(project, name)));
  });
});

it('type checks', () => {
  const [config, ...others] = examples.map((name) =>
    fs.readFileSync(path.join(project, name, 'tsconfig.json'), 'utf8'),
  );
  expect(others).toEqual(others.map(() => config));
  const all = { extends: './quickstart/tsconfig.json', include: ['*/*.ts'] };
  fs.writeFileSync(path.join(project, 'tsconfig.json'), JSON.stringify(all));
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const { status, stdout } = runIn('.', [process.execPath, tsc, '-p', '.']);
  expect(status, stdout).toBe(0);
});

it('lets a person say no in the example of an approval', () => {
  const folder = path.join(project, 'human-approval');
  for (const file of fs.readdirSync(folder))
    if (file.startsWith('agent.db')) fs.rmSync(path.join(folder, file));
  const printed = [
    ['npm', 'start'],
    ['npm', 'run', 'reject'],
  ].flatMap((command) => linesOf(runIn('human-approval', command).stdout));
  expect(printed).toEqual(['waiting for a person: refund {"order":8,"cents":5000}', 'No refund, sorry.']);
});

interface Command {
  readonly command: string;
  readonly prints: readonly string[];
}

/** Of its first block of commands, what comes behind the install. A line with a comment alone belongs to the command above. */
function commandsOf(readme: string): readonly Command[] {
  const block = /^```sh\nnpm install\n(.*?)^```$/ms.exec(fs.readFileSync(readme, 'utf8'))?.[1] ?? '';
  return block.split(/^(?=\S)/m).map((text) => ({
    command: /^[^#\n]*/.exec(text)?.[0].trim() ?? '',
    prints: [...text.matchAll(/# (.*)$/gm)].map(([, line = '']) => line),
  }));
}

function runIn(name: string, [command = '', ...commandArguments]: readonly string[]) {
  return spawnSync(command, commandArguments, {
    cwd: path.join(project, name),
    encoding: 'utf8',
    // npm prints the script that it runs, else.
    env: { ...ownEnv(), npm_config_loglevel: 'silent' },
    timeout: 60_000,
  });
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '');
}

function importedBy(folder: string): readonly string[] {
  const sources = fs.readdirSync(folder).filter((file) => file.endsWith('.ts'));
  const imported = sources.flatMap((file) =>
    [...fs.readFileSync(path.join(folder, file), 'utf8').matchAll(/ from '((?:@[\w-]+\/)?[\w-]+)[/']/g)].map(
      ([, name = '']) => name,
    ),
  );
  return [...new Set(imported)].sort();
}
