/**
 * The store that docs/build-a-store.md builds compiles against the built packages, runs, prints what the page says, and passes the suite
 * in each runner that the page names.
 */
import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { javaScriptName, readGuide, writeGuideFiles } from './support/guide.ts';

const root = path.resolve(import.meta.dirname, '../../..');
/** Below the root, where `@lousho/...` is what each package publishes; out of sight of every other tool. */
const workFolder = path.join(root, 'tools/rigs/.cache/build-a-store');
const run = promisify(execFile);

const { page, files, outputs } = await readGuide();

beforeAll(async () => {
  await rm(workFolder, { recursive: true, force: true });
  await mkdir(workFolder, { recursive: true });
  await writeFile(path.join(workFolder, 'package.json'), '{ "type": "module" }\n');
  // A project of its own: else Vitest takes the configuration that it finds above.
  await writeFile(path.join(workFolder, 'vitest.config.mjs'), 'export default {};\n');
  await writeGuideFiles(files, workFolder);
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

/** What Node prints, also when it ends with an error. */
async function outputOf(args: readonly string[]): Promise<string> {
  try {
    return (await run(process.execPath, [...args], { cwd: workFolder })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string };
    return `${stdout}${stderr}`;
  }
}
