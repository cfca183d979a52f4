/**
 * Pages that a reader follows step by step: the files that they show are written, the commands are run in their order, and each prints
 * what the page says.
 *
 * What differs from time to time (times, numbers of processes) is not compared. A file stands behind `<!-- file: pay.mjs -->`, what a command prints behind `<!-- prints: node pay.mjs -->`. Installing is the matter
 * of published.test.ts: here the packages of the repository are there.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../../..');
const run = promisify(execFile);
/** npm links no command that was not built yet when it installed. */
const lousho = path.join(root, 'packages/cli/dist/bin.js');

describe.each(['start'])('docs/%s.md', async (name) => {
  /** Below the root, where `@lousho/...` is what each package publishes. */
  const folder = path.join(root, 'tools/rigs/.cache/stories', name);
  const text = await readFile(path.join(root, `docs/${name}.md`), 'utf8');
  const steps = [...text.matchAll(/^<!-- (file|prints): (.*?) -->\n\n```\w+\n(.*?)^```$/gms)].map(
    ([, kind = '', what = '', content = '']) => ({ kind, what, content }),
  );

  beforeAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }\n');
  });

  it('has steps', () => {
    expect(steps.filter(({ kind }) => kind === 'prints')).not.toEqual([]);
  });

  it.each(steps)('$kind $what', async ({ kind, what, content }) => {
    if (kind === 'file') await writeFile(path.join(folder, what), content);
    else expect(timeless(await outputOf(what, folder))).toBe(timeless(content));
  });
});

function timeless(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/just now|\d+ s ago/g, '<ago>')
    .replaceAll(/process \d+/g, 'process <number>');
}

/** What a command prints, also when it ends with an error or is killed. */
async function outputOf(command: string, cwd: string): Promise<string> {
  const [file = '', ...args] = command.replace(/^npx lousho /, `node ${lousho} `).split(' ');
  const { FORCE_COLOR: _colours, ...env } = process.env;
  try {
    return (await run(file, args, { cwd, env: { ...env, NO_COLOR: '1' } })).stdout;
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}
