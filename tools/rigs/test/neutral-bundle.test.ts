/** The packages that promise to run on every platform: what they publish, bundled, needs nothing from Node. */
import { builtinModules } from 'node:module';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { expect, it } from 'vitest';

const neutralEntryPoints = [
  '@lousho/contract',
  '@lousho/executor',
  '@lousho/core',
  '@lousho/http',
  '@lousho/mcp',
  '@lousho/otel',
  '@lousho/provider-ai-sdk',
  '@lousho/store-kit',
  '@lousho/store-memory',
  '@lousho/store-kv',
  '@lousho/testing',
  '@lousho/testing/crash',
  '@lousho/testing/simulation',
  '@lousho/testing/conformance',
];

it.each(neutralEntryPoints)('%s runs without Node', async (entryPoint) => {
  expect(await nodeModulesIn(`export * from '${entryPoint}';`)).toEqual([]);
});

it('finds a Node module, with and without its prefix', async () => {
  const source = `import 'node:fs'; import path from 'path'; export const load = () => [path, import('node:os')];`;
  expect(await nodeModulesIn(source)).toEqual(['node:fs', 'node:os', 'path']);
});

async function nodeModulesIn(source: string): Promise<string[]> {
  const found = new Set<string>();
  await build({
    stdin: { contents: source, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    bundle: true,
    write: false,
    platform: 'neutral',
    format: 'esm',
    logLevel: 'silent',
    plugins: [collectNodeModules(found)],
  });
  return [...found].sort();
}

function collectNodeModules(found: Set<string>): Plugin {
  const names = builtinModules.map((name) => name.replaceAll('/', '\\/')).join('|');
  return {
    name: 'collect-node-modules',
    setup(bundle) {
      bundle.onResolve({ filter: new RegExp(`^(node:.*|${names})$`) }, ({ path }) => {
        found.add(path);
        return { path, external: true };
      });
    },
  };
}
