/**
 * Every code block of the READMEs and of docs/ compiles against the built packages, runs, and prints what its comments say.
 *
 * A block is checked as a reader would paste it: into a file of its own, outside of the package. What a short example leaves out stands
 * in an HTML comment above it, `<!-- given ... -->`, and is put in front. A block with a `declare` is compiled, not run. A line such as
 * `// → Done.` is a line that the block prints.
 *
 * Two kinds of blocks are for other tests: `<!-- file: x -->` begins a file of a page that is followed step by step (stories.test.ts), and
 * `<!-- peer: x -->` what is written for another library, whose syntax alone is checked (peer-code.test.ts).
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { beforeAll, describe, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../../..');
/** Below the root, where `@lousho/...` is what each package publishes; out of sight of every other tool. */
const workFolder = path.join(root, 'tools/rigs/.cache/readme');

interface Block {
  /** `packages/core/README.md:12` */
  readonly name: string;
  readonly language: 'ts' | 'js';
  /** With as many empty lines in front that a compiler names the lines of the page. */
  readonly source: string;
  readonly fileName: string;
}

/** Nx asks its tasks for colours; what is compared is text. */
const { FORCE_COLOR: _colours, ...others } = process.env;
const withoutColours = { ...others, NO_COLOR: '1' };

const pages = await listPages();
const blocks = (await Promise.all(pages.map(blocksOf))).flat();
/** A block that must not compile: without it, a compiler that does not run would look like success. */
const mistake = { fileName: 'mistake.ts', source: "import { noSuchThing } from '@lousho/core';\n" };
let compilerOutput: string;

beforeAll(async () => {
  await rm(workFolder, { recursive: true, force: true });
  await mkdir(workFolder, { recursive: true });
  await writeFile(path.join(workFolder, mistake.fileName), mistake.source);
  for (const { fileName, language, source } of blocks) {
    await writeFile(path.join(workFolder, fileName), source);
    if (language === 'ts')
      await writeFile(path.join(workFolder, runnableName(fileName)), await asJavaScript(source));
  }
  compilerOutput = await compile();
}, 120_000);

it('finds mistakes', () => {
  expect(problemsIn(mistake.fileName)).toHaveLength(1);
});

it('finds every block of TypeScript and JavaScript', async () => {
  const texts = await Promise.all(pages.map(readPage));
  const languages = texts.flatMap((text) =>
    [...text.matchAll(/^ *```(\w+)/gm)].map(([, language]) => language),
  );
  expect(languages.filter((language) => language === 'ts' || language === 'js')).toHaveLength(blocks.length);
  expect(languages.filter((language) => /script|^[cm]?[jt]sx?$/.test(language ?? ''))).toHaveLength(
    blocks.length,
  );
});

describe.each(blocks)('$name', (block) => {
  it('compiles', () => {
    expect(problemsIn(block.fileName)).toEqual([]);
  });

  if (/^\s*(export )?declare /m.test(block.source)) return;
  it('runs and prints what it says', async () => {
    const file = path.join(
      workFolder,
      block.language === 'ts' ? runnableName(block.fileName) : block.fileName,
    );
    const emptyFolder = await mkdtemp(path.join(tmpdir(), 'lousho-readme-'));
    try {
      const { stdout } = await run(process.execPath, [file], { cwd: emptyFolder, env: withoutColours });
      const expected = [...block.source.matchAll(/\/\/ → (.*)$/gm)].map(([, line]) => line);
      expect(stdout.split('\n').filter((line) => line !== '')).toEqual(expected);
    } finally {
      await rm(emptyFolder, { recursive: true, force: true });
    }
  });
});

function problemsIn(fileName: string): string[] {
  return compilerOutput.split('\n').filter((line) => line.startsWith(fileName));
}

async function listPages(): Promise<string[]> {
  const packages = await readdir(path.join(root, 'packages'));
  const docs = await readdir(path.join(root, 'docs'), { recursive: true });
  const files = [
    'README.md',
    ...packages.sort().map((name) => `packages/${name}/README.md`),
    // Examples are projects of their own; build-a-store.md has a test of its own.
    ...docs
      .sort()
      .filter((name) => name.endsWith('.md') && !/^examples|^build-a-store/.test(name))
      .map((name) => `docs/${name}`),
  ];
  return files.filter((file) => existsSync(path.join(root, file)));
}

/** Without the blocks that are for other tests; the lines stay where they are. */
async function readPage(page: string): Promise<string> {
  const text = await readFile(path.join(root, page), 'utf8');
  return text.replaceAll(/^<!-- (?:file|peer): [^\n]* -->\n\n```.*?^```$/gms, (block) =>
    '\n'.repeat(countLines(block)),
  );
}

async function blocksOf(page: string): Promise<Block[]> {
  const text = await readPage(page);
  const fenced = /(?:<!-- given\n(?<given>.*?)^-->\n\s*)?^```(?<language>ts|js)\n(?<code>.*?)^```$/gms;
  return [...text.matchAll(fenced)].map((match) => {
    const {
      given = '',
      language,
      code = '',
    } = match.groups as { given?: string; language: 'ts' | 'js'; code: string };
    const fence = match[0].indexOf(`\`\`\`${language}\n`);
    const line = 1 + countLines(text.slice(0, match.index + fence));
    const before = '\n'.repeat(countLines(text.slice(0, match.index)) + (given === '' ? 0 : 1)) + given;
    return {
      name: `${page}:${line}`,
      language,
      source: before + '\n'.repeat(Math.max(0, line - countLines(before))) + code,
      fileName: `${page.replaceAll('/', '_')}_${line}.${language === 'ts' ? 'ts' : 'mjs'}`,
    };
  });
}

function countLines(text: string): number {
  return text.split('\n').length - 1;
}

function runnableName(fileName: string): string {
  return fileName.replace(/\.ts$/, '.mjs');
}

async function asJavaScript(source: string): Promise<string> {
  return (await transform(source, { loader: 'ts', target: 'node20' })).code;
}

/** Gives what the compiler prints; an empty text when all is well. */
async function compile(): Promise<string> {
  const options = {
    // What a new project has: no condition that leads to our sources.
    compilerOptions: {
      target: 'es2022',
      lib: ['es2023'],
      module: 'nodenext',
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      types: ['node'],
    },
    include: ['*.ts'],
  };
  await writeFile(path.join(workFolder, 'package.json'), '{ "type": "module" }\n');
  await writeFile(path.join(workFolder, 'tsconfig.json'), JSON.stringify(options));
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  try {
    const { stdout } = await run(process.execPath, [tsc, '-p', 'tsconfig.json'], {
      cwd: workFolder,
      env: withoutColours,
    });
    return stdout;
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

const run = promisify(execFile);
