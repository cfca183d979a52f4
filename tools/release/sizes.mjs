// What a durable agent on SQLite costs to install, beside those of others. Nothing is compiled: what install scripts build comes on top for
// everybody who uses better-sqlite3, which are the first two.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from './packages.mjs';
import { installProject } from './project.mjs';

const bench = path.resolve(import.meta.dirname, '../bench/peers');
const contestants = [
  { name: 'Lousho, store-sqlite', packages: ['@lousho/core', '@lousho/store-sqlite', ...pinned('zod')] },
  {
    name: 'LangGraph.js, SQLite saver',
    packages: pinned(
      '@langchain/langgraph',
      '@langchain/core',
      '@langchain/langgraph-checkpoint-sqlite',
      'zod',
    ),
  },
  { name: 'Mastra, LibSQL', packages: pinned('@mastra/core', '@mastra/libsql', 'zod') },
];

/** In the versions that the benchmark measures. */
function pinned(...names) {
  const { dependencies } = readManifest(bench);
  return names.map((name) => `${name}@${dependencies[name]}`);
}

/** @returns `[{ name, packages, megabytes } | { name, missing }]`; a contestant that cannot be had is no fault of ours */
export async function measureSizes(folder, registry) {
  const sizes = [];
  for (const [index, { name, packages }] of contestants.entries()) {
    try {
      const project = await installProject(path.join(folder, `${index}`), registry, packages, [
        '--ignore-scripts',
      ]);
      sizes.push({ name, ...sizeOf(project) });
    } catch (error) {
      if (index === 0) throw error;
      sizes.push({ name, missing: error.message.split('\n').at(-1) });
    }
  }
  return sizes;
}

function sizeOf(project) {
  const modules = path.join(project, 'node_modules');
  const { packages } = JSON.parse(readFileSync(path.join(modules, '.package-lock.json'), 'utf8'));
  const bytes = readdirSync(modules, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((total, entry) => total + statSync(path.join(entry.parentPath, entry.name)).size, 0);
  return { packages: Object.keys(packages).length, megabytes: Math.round(bytes / 100_000) / 10 };
}
