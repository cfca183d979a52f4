/** Links between the pages of the repository lead somewhere: to a file that exists, and to a heading that is in it. */
import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../../..');
const pages = [
  ...(await pagesIn('.')),
  ...(await pagesIn('docs')),
  ...(await pagesIn('docs/errors')),
  ...(await pagesIn('docs/migrate')),
  ...(await pagesBelow('docs/examples')),
  ...(await pagesBelow('packages')),
];

describe.each(pages)('%s', (page) => {
  it('has only links that lead somewhere', async () => {
    const text = withoutCode(await readFile(path.join(root, page), 'utf8'));
    const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
    const broken = await Promise.all(
      targets.map(async (target) => ((await leadsSomewhere(page, target)) ? [] : [target])),
    );
    expect(broken.flat()).toEqual([]);
  });
});

it('sees a link to a file or a heading that is not there', async () => {
  expect(await leadsSomewhere('README.md', 'docs/nothing.md')).toBe(false);
  expect(await leadsSomewhere('README.md', 'CONTRIBUTING.md#nothing')).toBe(false);
  expect(await leadsSomewhere('README.md', 'CONTRIBUTING.md#set-up')).toBe(true);
});

async function leadsSomewhere(page: string, target: string): Promise<boolean> {
  if (/^[a-z]+:/.test(target)) return true;
  const [file = '', heading] = target.split('#');
  const found = file === '' ? page : path.join(path.dirname(page), file);
  if (!existsSync(path.join(root, found))) return false;
  return (
    heading === undefined || headingsOf(await readFile(path.join(root, found), 'utf8')).includes(heading)
  );
}

/** As GitHub makes them. */
function headingsOf(text: string): string[] {
  return [...withoutCode(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```.*?^```$/gms, '');
}

async function pagesIn(folder: string): Promise<string[]> {
  const names = await readdir(path.join(root, folder));
  return names
    .filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md')
    .map((name) => path.join(folder, name));
}

/** Of each folder in it. */
async function pagesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(path.join(root, folder), { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory());
  return (await Promise.all(folders.map(({ name }) => pagesIn(path.join(folder, name))))).flat();
}
