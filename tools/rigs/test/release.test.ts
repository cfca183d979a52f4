/** What a release is made with (tools/release), as far as it needs no registry: `npm run release:check` tries the rest. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';

const release = path.resolve(import.meta.dirname, '../../release');

interface Report {
  try(subject: string, check: string, work: () => Promise<void>): Promise<boolean>;
  skip(subject: string, check: string, why: string): void;
  count(outcome: 'passed' | 'failed' | 'skipped'): number;
  table(): string;
  explanations(): string;
}
const { Report } = await load<{ Report: new (onFailure: (line: string) => void) => Report }>('report');
const { programs } = await load<{ programs: Record<string, unknown> }>('programs');
const { publicPackages } = await load<{ publicPackages: (root: string) => { name: string }[] }>('packages');
const { nameRepository } = await load<{ nameRepository: (root: string, url: string) => void }>(
  'name-repository',
);
const { setExampleRanges } = await load<{ setExampleRanges: (root: string) => void }>('example-ranges');

async function load<Module>(name: string): Promise<Module> {
  return (await import(pathToFileURL(path.join(release, `${name}.mjs`)).href)) as Module;
}

let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-manifests-'));
  write('.', { name: '@lousho/source', private: true, license: 'MIT', workspaces: [] });
  write('packages/core', { name: '@lousho/core', version: '0.3.1', license: 'MIT', type: 'module' });
  write('packages/inner', { name: '@lousho/inner', version: '0.0.0', private: true });
});
afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

it('has a program for every package that is published, so that none is released untried', () => {
  const published = publicPackages(path.resolve(release, '../..')).map(({ name }) => name);
  expect(Object.keys(programs).sort()).toEqual(published.sort());
});

it('names the repository in each manifest, and the folder that the package has in it', () => {
  nameRepository(root, 'git+https://example.invalid/old.git');
  nameRepository(root, 'git+https://example.invalid/new.git');
  const repository = { type: 'git', url: 'git+https://example.invalid/new.git' };
  expect(read('.')).toEqual({
    name: '@lousho/source',
    private: true,
    license: 'MIT',
    repository,
    workspaces: [],
  });
  expect(read('packages/core')).toMatchObject({ repository: { ...repository, directory: 'packages/core' } });
  expect(read('packages/inner')).not.toHaveProperty('repository');
});

it('lets examples ask for the versions that the packages have, and for nothing else anew', () => {
  const dependencies = { '@lousho/core': '^0.1.0', zod: '^4.6.7' };
  write('docs/examples/one', { name: 'one', dependencies, devDependencies: { tsx: '^4.23.0' } });
  setExampleRanges(root);
  expect(read('docs/examples/one')).toEqual({
    name: 'one',
    dependencies: { '@lousho/core': '^0.3.1', zod: '^4.6.7' },
    devDependencies: { tsx: '^4.23.0' },
  });
});

it('counts what could not be tried as skipped, with its reason, and goes on behind a failure', async () => {
  const heard: string[] = [];
  const report = new Report((line) => heard.push(line));
  report.skip('@lousho/core', 'import 24', 'there is no such Node');
  expect(await report.try('@lousho/core', 'import 20', () => Promise.reject(new Error('it hangs')))).toBe(
    false,
  );
  expect(await report.try('@lousho/core', 'import 22', () => Promise.resolve())).toBe(true);
  expect([report.count('passed'), report.count('failed'), report.count('skipped')]).toEqual([1, 1, 1]);
  expect(report.table().split('\n')).toEqual([
    '              import 24  import 20  import 22',
    '@lousho/core  skipped    FAILED     ok',
  ]);
  expect(report.explanations().split('\n')).toEqual([
    'import 24 skipped: there is no such Node',
    '@lousho/core, import 20 FAILED: it hangs',
  ]);
  expect(heard).toEqual(['@lousho/core, import 20 FAILED: it hangs']);
});

function write(folder: string, manifest: object): void {
  fs.mkdirSync(path.join(root, folder), { recursive: true });
  fs.writeFileSync(path.join(root, folder, 'package.json'), JSON.stringify(manifest));
}

function read(folder: string): unknown {
  return JSON.parse(fs.readFileSync(path.join(root, folder, 'package.json'), 'utf8'));
}
