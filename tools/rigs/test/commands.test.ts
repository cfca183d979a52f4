/** Every command of `lousho` that a page of docs/ names is one, with the options that the page gives it. */
import { execFile } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../../..');
const run = promisify(execFile);

const pages = (await readdir(path.join(root, 'docs'))).filter((name) => name.endsWith('.md'));
const texts = await Promise.all(pages.map((page) => readFile(path.join(root, 'docs', page), 'utf8')));
/** `approvals approve <id> --by ada`, from inline code and from blocks. */
const named = texts
  .flatMap((text) => [...text.matchAll(/(?:`|npx |^ +)lousho ([a-z][^`\n]*)/gm)])
  .map(([, line = '']) => ({
    words: (/^(?:[a-z][a-z-]*(?![^ ]) ?)+/.exec(line)?.[0] ?? '').trim(),
    options: line.match(/--[a-z-]+/g) ?? [],
  }));

/** By their words: each is asked for its help once. */
const optionsOf = new Map(
  named.map(({ words }) => [
    words,
    named.filter((other) => other.words === words).flatMap(({ options }) => options),
  ]),
);
const general = await helpOf([]);

it('finds commands', () => {
  expect(optionsOf.size).toBeGreaterThan(12);
});

it.each([...optionsOf])('lousho %s %j', async (words, options) => {
  const help = await helpOf(words.split(' '));
  // An unknown command gets the help of the command above it.
  expect(help).toContain(`Usage: lousho ${words} `);
  for (const option of options) expect(help + general).toContain(option);
});

async function helpOf(words: readonly string[]): Promise<string> {
  const cli = path.join(root, 'packages/cli/dist/bin.js');
  return (await run(process.execPath, [cli, ...words, '--help'])).stdout;
}
