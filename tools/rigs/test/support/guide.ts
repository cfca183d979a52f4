/**
 * The files that docs/build-a-store.md is made of. A comment in front of a block says which file it is (`<!-- file: database.ts -->`), or
 * what a file prints (`<!-- prints: check.ts -->`).
 */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { transform } from 'esbuild';

interface GuideFile {
  readonly name: string;
  readonly text: string;
}

export async function readGuide() {
  const page = await readFile(path.resolve(import.meta.dirname, '../../../../docs/build-a-store.md'), 'utf8');
  return { page, files: blocksOf(page, 'file', 'ts'), outputs: blocksOf(page, 'prints', 'text') };
}

/** Each as it stands on the page, and as JavaScript beside it. */
export async function writeGuideFiles(files: readonly GuideFile[], folder: string): Promise<void> {
  for (const { name, text } of files) {
    await writeFile(path.join(folder, name), text);
    // Plain Node needs JavaScript; the imports name TypeScript files, as a project without a build step does.
    const { code } = await transform(text, { loader: 'ts', target: 'node20' });
    await writeFile(path.join(folder, javaScriptName(name)), code.replaceAll(/\.ts";$/gm, '.mjs";'));
  }
}

export function javaScriptName(name: string): string {
  return name.replace(/\.ts$/, '.mjs');
}

function blocksOf(page: string, kind: 'file' | 'prints', language: 'ts' | 'text'): readonly GuideFile[] {
  const block = new RegExp(
    `^<!-- ${kind}: (\\S+?)(?:, not run)? -->\\n\\n\`\`\`${language}\\n(.*?)^\`\`\`$`,
    'gms',
  );
  return [...page.matchAll(block)].map(([, name = '', text = '']) => ({ name, text }));
}
