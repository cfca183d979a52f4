/** Where the fixtures of stored data are, and the list that says that none of them was touched. */
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { FrozenStore } from './frozen-stores.ts';

export const packages = path.resolve(import.meta.dirname, '../../../packages');
/** `sha256sum -c` reads it, in the folder of the packages. */
export const fixturesFile = path.resolve(import.meta.dirname, '../frozen.sha256');

/** What the story leaves, whichever store it was told on. */
export function recordsFile(name: string): string {
  return path.join(packages, 'contract/test/fixtures', `${name}.json`);
}

export function fixtureOf(store: FrozenStore, name: string): string {
  return path.join(packages, store.package, 'test/fixtures', name + store.ending);
}

/** Of every time the story was frozen, the first first. */
export async function frozenNames(): Promise<readonly string[]> {
  const files = await readdir(path.dirname(recordsFile('')));
  const numbers = files
    .map((file) => Number(/^stored-(\d+)\.json$/.exec(file)?.[1]))
    .filter(Number.isInteger);
  return numbers.sort((a, b) => a - b).map((number) => `stored-${number}`);
}

/** The list: a line for each file, its hash and its path. */
export async function frozenLines(): Promise<readonly string[]> {
  return inOrder((await readFile(fixturesFile, 'utf8')).split('\n').filter((line) => line !== ''));
}

/** The lines for the fixtures that are there. */
export async function fixtureLines(): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const name of await readdir(packages))
    for (const file of await filesBelow(path.join(packages, name, 'test/fixtures'))) {
      const hash = createHash('sha256')
        .update(await readFile(file))
        .digest('hex');
      lines.push(`${hash}  ${path.relative(packages, file).replaceAll(path.sep, '/')}`);
    }
  return inOrder(lines);
}

export function pathIn(line: string): string {
  return line.slice(line.indexOf(' ') + 2);
}

function inOrder(lines: readonly string[]): readonly string[] {
  return lines.toSorted((a, b) => (pathIn(a) < pathIn(b) ? -1 : 1));
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}
