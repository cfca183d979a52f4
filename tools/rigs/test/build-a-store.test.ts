/**
 * The store that docs/build-a-store.md builds compiles against the built packages, runs, prints what the page says, and passes the suite
 * in each runner that the page names.
 *
 * A comment in front of a block says which file it is (`<!-- file: database.ts -->`), or what a file prints (`<!-- prints: check.ts -->`).
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { beforeAll, describe, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../../..');
/** Below the root, where `@lousho/...` is what each package publishes; out of sight of every other tool. */
const workFolder = path.join(root, 'tools/rigs/.cache/build-a-store');
const run = promisify(execFile);

const page = await readFile(path.join(root, 'docs/build-a-store.md'), 'utf8');
const files = blocksOf('file', 'ts');
const outputs = blocksOf('prints', 'text');

beforeAll(async () => {
  await rm(workFolder, { recursive: true, force: true });
  await mkdir(workFolder, { recursive: true });
  await writeFile(path.join(workFolder, 'package.json'), '{ "type": "module" }\n');
  // A project of its own: else Vitest takes the configuration that it finds above.
  await writeFile(path.join(workFolder, 'vitest.config.mjs'), 'export default {};\n');
  for (const { name, text } of files) {
    await writeFile(path.join(workFolder, name), text);
    // Plain Node needs JavaScript; the imports name TypeScript files, as a project without a build step does.
    const { code } = await transform(text, { loader: 'ts', target: 'node20' });
    await writeFile(path.join(workFolder, javaScriptName(name)), code.replaceAll(/\.ts";$/gm, '.mjs";'));
  }
});

it('finds every block of code and every output', () => {
  const fences = [...page.matchAll(/^```(\w+)$/gm)].map(([, language]) => language);
  expect(fences.filter((language) => language === 'ts')).toHaveLength(files.length);
  expect(fences.filter((language) => language === 'text')).toHaveLength(outputs.length);
  expect(fences).toHaveLength(files.length + outputs.length);
});

it('compiles', async () => {
  const compilerOptions = {
    ...{ target: 'es2022', lib: ['es2023'], module: 'nodenext', strict: true, noEmit: true },
    ...{ allowImportingTsExtensions: true, skipLibCheck: false, types: ['node'] },
  };
  await writeFile(
    path.join(workFolder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['*.ts'] }),
  );
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  expect(await outputOf([tsc, '-p', 'tsconfig.json'])).toBe('');
});

describe.each(outputs)('$name', ({ name, text }) => {
  it('prints what the page says', async () => {
    expect((await outputOf([javaScriptName(name)])).trim()).toBe(text.trim());
  });
});

it('passes the suite in node:test', async () => {
  const output = await outputOf(['--test', '--test-reporter=spec', javaScriptName('row-store.node-test.ts')]);
  expect(output).toMatch(/^ℹ fail 0$/m);
  expect(output).toContain('leases/one-winner');
});

it('passes the suite in vitest', async () => {
  const vitest = path.join(root, 'node_modules/vitest/vitest.mjs');
  const output = await outputOf([vitest, 'run', '--root', '.', '--reporter=json', 'row-store.test.ts']);
  const { numFailedTests, numPassedTests } = JSON.parse(output) as Record<string, number>;
  expect(numFailedTests).toBe(0);
  expect(numPassedTests).toBeGreaterThan(60);
});

function blocksOf(kind: 'file' | 'prints', language: 'ts' | 'text') {
  const block = new RegExp(
    `^<!-- ${kind}: (\\S+?)(?:, not run)? -->\\n\\n\`\`\`${language}\\n(.*?)^\`\`\`$`,
    'gms',
  );
  return [...page.matchAll(block)].map(([, name = '', text = '']) => ({ name, text }));
}

function javaScriptName(name: string): string {
  return name.replace(/\.ts$/, '.mjs');
}

/** What Node prints, also when it ends with an error. */
async function outputOf(args: readonly string[]): Promise<string> {
  try {
    return (await run(process.execPath, [...args], { cwd: workFolder })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string };
    return `${stdout}${stderr}`;
  }
}
