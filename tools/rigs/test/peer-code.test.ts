/** What docs/migrate shows of other libraries says which version it is for, and is at least TypeScript. */
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { transform } from 'esbuild';
import { describe, expect, it } from 'vitest';

const folder = path.resolve(import.meta.dirname, '../../../docs/migrate');
const pages = await readdir(folder);

describe.each(pages)('docs/migrate/%s', async (page) => {
  const text = await readFile(path.join(folder, page), 'utf8');
  const blocks = [...text.matchAll(/^<!-- peer: (.*?) -->\n\n```ts\n(.*?)^```$/gms)].map(
    ([, peer = '', code = '']) => ({ peer, code }),
  );

  it('names the versions, also where a reader sees them', () => {
    expect(blocks.length).toBeGreaterThan(0);
    const [, head = ''] = /^(.*?)^## /ms.exec(text) ?? [];
    for (const { peer } of blocks) {
      const [, name = '', version = ''] = /^(.+)@(\d+\.\d+\.\d+)$/.exec(peer) ?? [];
      expect(head).toContain(`\`${name}\` ${version}`);
    }
  });

  it('is syntax that a compiler takes', async () => {
    for (const { code } of blocks) await transform(code, { loader: 'ts', target: 'node20' });
  });
});
