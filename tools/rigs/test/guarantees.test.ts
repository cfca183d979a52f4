/** docs/guarantees.md names every promise of docs/contract.md, and each test that it links to is there under that title. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const docs = path.resolve(import.meta.dirname, '../../../docs');
const contract = await readFile(path.join(docs, 'contract.md'), 'utf8');
const page = await readFile(path.join(docs, 'guarantees.md'), 'utf8');

interface TestLink {
  readonly title: string;
  readonly file: string;
}

/** "[`title`](file)"; a title may be cut at its end. */
const links = [...page.matchAll(/\[`([^`]+)`\]\(([^)]+\.ts)\)/g)].map(([, title = '', file = '']) => ({
  title,
  file,
}));
const lines = [...page.matchAll(/^- \*\*([A-Z]\d+)\*\* (.*)$/gm)].map(([, number = '', text = '']) => ({
  number,
  text,
}));

it('names every promise of the contract, once and in its order', () => {
  // `**G1**` in a table or a list; W1 to W3 are explained once more below theirs.
  const promises = [...contract.matchAll(/^[|-] +\*\*([A-Z]\d+)\*\*/gm)].map(([, number]) => number);
  expect(promises).toContain('Z8');
  expect(lines.map(({ number }) => number)).toEqual(promises);
});

it('links each promise to a test, or says why there is none', () => {
  const without = lines.filter(({ text }) => !text.includes('.ts)')).map(({ number }) => number);
  expect(without).toEqual(['N8', 'N11']);
  for (const { number, text } of lines) if (without.includes(number)) expect(text).toContain('No test: ');
});

describe.each([...new Set(links.map(({ file }) => file))])('%s', (file) => {
  it('has the tests that the page names', async () => {
    const titles = links.filter((link) => link.file === file).map(({ title }) => title);
    const alive = await Promise.all(titles.map((title) => isThere({ title, file })));
    expect(titles.filter((_title, index) => !alive[index])).toEqual([]);
  });
});

it('sees a title that is not there', async () => {
  const file = '../tools/rigs/test/links.test.ts';
  expect(await isThere({ title: 'has only links that', file })).toBe(true);
  expect(await isThere({ title: 'only links that', file })).toBe(false);
});

/** As the beginning of a test's title or of a rule's name: behind a quotation mark, and a `%s` of the runner. */
async function isThere({ title, file }: TestLink): Promise<boolean> {
  const source = await readFile(path.join(docs, file), 'utf8');
  return ["'", '"', '`', "'%s "].some((before) => source.includes(before + title));
}
