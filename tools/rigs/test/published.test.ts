/** What npm would publish, installed into an application: it works with import and with require, and brings nothing that nobody asked for. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { filesNamed, ownPagesLinked, readPackage } from './support/published-package.ts';
import { Tarballs, offerPrebuild, ownEnv } from './support/tarballs.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const tarballs = new Tarballs('lousho-published-');
/** What an application with the memory store has; the others need packages of other people. */
const neutral = [
  'contract',
  'executor',
  'core',
  'http',
  'provider-ai-sdk',
  'store-kit',
  'store-memory',
  'store-kv',
  'testing',
];
const all = [...neutral, 'cli', 'mcp', 'otel', 'store-file', 'store-sqlite', 'tools-workspace'];

beforeAll(() => {
  tarballs.pack(all);
  offerPrebuild(tarballs.folder);
});
afterAll(() => tarballs.remove());

it('runs from its tarballs, imported and required', () => {
  const app = tarballs.install('app-with-all', all, ['zod', 'better-sqlite3', '@opentelemetry/api']);
  fs.writeFileSync(path.join(app, 'imported.mjs'), `${imports}\n${program}`);
  fs.writeFileSync(path.join(app, 'required.cjs'), `${requires}\n(async () => {${program}})();`);
  const lines = Array<string>(5).fill('Hello Ada, 1 call, finished');
  expect(linesOf(app, 'imported.mjs')).toEqual(lines);
  expect(linesOf(app, 'required.cjs')).toEqual(lines);
});

it('brings lousho, which says which store to install', () => {
  const brought = ['contract', 'executor', 'core', 'store-file', 'store-kit', 'testing', 'cli'];
  const app = tarballs.install('app-with-cli', brought, ['zod']);
  fs.writeFileSync(path.join(app, 'jobs.db'), 'some database');
  const { status, stderr } = spawnSync('npx', ['--no', 'lousho', 'pending', '--store', 'sqlite:./jobs.db'], {
    cwd: app,
    encoding: 'utf8',
    env: ownEnv(),
  });
  expect(stderr).toContain('Install it: npm install @lousho/store-sqlite');
  expect(status).toBe(2);
});

it.each([
  ['node16', 'node16'],
  ['esnext', 'bundler'],
])('type checks with module %s, every declaration read, and no types of Node', (module, moduleResolution) => {
  const app = tarballs.install(`app-with-types-${module}`, neutral, ['zod']);
  fs.writeFileSync(path.join(app, 'app.mts'), typed);
  const compilerOptions = {
    ...{ module, moduleResolution, strict: true, noEmit: true, skipLibCheck: false },
    ...{ target: 'es2022', lib: ['es2022', 'dom'], types: [] },
  };
  fs.writeFileSync(path.join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['app.mts'] }));
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', app], {
    encoding: 'utf8',
    env: ownEnv(),
  });
  expect(status, stdout).toBe(0);
});

it('installs no database driver with the memory store', () => {
  const app = tarballs.install('app-with-memory', neutral, ['zod']);
  const installed = fs.readdirSync(path.join(app, 'node_modules')).filter((name) => !name.startsWith('.'));
  expect(installed.sort()).toEqual(['@lousho', 'croner', 'zod']);
  expect(fs.readdirSync(path.join(app, 'node_modules', '@lousho')).sort()).toEqual([...neutral].sort());
});

/* ── What is in a tarball ── */

it('publishes every package that is not private', () => {
  const folders = fs.readdirSync(path.join(root, 'packages'));
  const named = folders.filter((name) => manifestIn(`packages/${name}`).private !== true);
  expect(named.sort()).toEqual([...all].sort());
});

describe.each(all)('%s', (name) => {
  it('has its licence, its pages, and every file that it names', () => {
    const published = readPackage(tarballs.tarballOf(name));
    const expected = ['LICENSE', 'README.md', ...ownPagesLinked(published), ...filesNamed(published)];
    expect(expected.filter((file) => !published.files.has(file))).toEqual([]);
    expect([...published.files].filter((file) => /^(?:src|test|node_modules|coverage)\//.test(file))).toEqual(
      [],
    );
  });

  it('says what it is, where it runs and where it comes from', () => {
    const { manifest } = readPackage(tarballs.tarballOf(name));
    const repository = manifestIn('.').repository;
    expect(manifest).toMatchObject({ license: 'MIT', type: 'module', sideEffects: false });
    expect(manifest.engines).toEqual(manifestIn('.').engines);
    expect(manifest.description).toMatch(/\w+ \w+/);
    expect(manifest.keywords).toEqual(expect.arrayContaining(['lousho', 'ai-agents', 'durable-execution']));
    // npm shows the links of a README only when it knows the repository, and where in it the package is.
    expect(manifest.repository).toEqual(repository && { ...repository, directory: `packages/${name}` });
  });
});

interface SourceManifest {
  readonly private?: boolean;
  readonly engines?: object;
  readonly repository?: object;
}

function manifestIn(folder: string): SourceManifest {
  return JSON.parse(fs.readFileSync(path.join(root, folder, 'package.json'), 'utf8')) as SourceManifest;
}

/* ── The application ── */

const typed = `
  import { createAgent, defineTool } from '@lousho/core';
  import { fromAiSdk, type AiSdkLanguageModel } from '@lousho/provider-ai-sdk';
  import { copyStore, encryptedStore } from '@lousho/store-kit';
  import { memoryStore } from '@lousho/store-memory';
  import { mockModel } from '@lousho/testing';
  import { z } from 'zod';

  const greet = defineTool({
    name: 'greet',
    description: 'Greets somebody.',
    input: z.object({ name: z.string() }),
    execute: ({ name }) => name.toUpperCase(),
  });
  const store = encryptedStore(memoryStore(), [{ id: 'k', key: new Uint8Array(32) }]);
  const agent = createAgent({ provider: mockModel(['Hello.']), tools: [greet], store });
  export const left: Promise<number> = copyStore(memoryStore(), store).then((result) => result.left.length);
  export const providerOf = (model: AiSdkLanguageModel) => fromAiSdk(model, { settings: { temperature: 0 } });
  export const text: Promise<string> = agent.send('Greet Ada.', { sessionId: 'ada' }).then((result) => result.text);
`;

const names = {
  '@lousho/cli': ['defineConfig'],
  '@lousho/core': ['createAgent', 'defineTool'],
  '@lousho/http': ['createChatHandler'],
  '@lousho/mcp': ['mcpTools'],
  '@lousho/otel': ['openTelemetry'],
  '@lousho/provider-ai-sdk': ['fromAiSdk'],
  '@lousho/store-file': ['fileStore'],
  '@lousho/store-kit': ['encryptedStore'],
  '@lousho/store-kv': ['KVStore'],
  '@lousho/store-memory': ['memoryStore'],
  '@lousho/store-sqlite': ['SqliteStore'],
  '@lousho/testing': ['mockModel'],
  '@lousho/tools-workspace': ['workspaceTools'],
  zod: ['z'],
};
const imports = Object.entries(names)
  .map(([from, what]) => `import { ${what.join(', ')} } from '${from}';`)
  .join('\n');
const requires = Object.entries(names)
  .map(([from, what]) => `const { ${what.join(', ')} } = require('${from}');`)
  .join('\n');
const program = `
  const greet = defineTool({
    name: 'greet',
    description: 'Greets somebody.',
    input: z.object({ name: z.string() }),
    execute: ({ name }) => 'Hello ' + name,
  });
  const listTools = async () => ({ tools: [{ name: 'far', inputSchema: { type: 'object' } }] });
  const far = await mcpTools({ client: { listTools, callTool: async () => ({}), close: async () => {} } });
  const values = new Map();
  const namespace = {
    get: async (key) => values.get(key) ?? null,
    put: async (key, value) => void values.set(key, value),
    delete: async (key) => void values.delete(key),
  };
  const kvStore = new KVStore(namespace);
  const sealed = encryptedStore(memoryStore(), [{ id: 'k', key: new Uint8Array(32) }]);
  for (const store of [memoryStore(), kvStore, fileStore('runs'), new SqliteStore('runs.db'), sealed]) {
    const provider = mockModel([
      { toolCalls: [{ name: 'greet', args: { name: 'Ada' } }] },
      ({ messages }) => messages.at(-1).content[0].result,
    ]);
    const tools = [greet, ...far, ...workspaceTools({ root: '.' })];
    const agent = createAgent({ provider, tools, store, telemetry: openTelemetry() });
    const { text, toolCalls, sessionId } = await agent.send('Greet Ada.', { sessionId: 'run-of-' + process.pid });
    const { status } = await store.checkpoints.load(sessionId);
    await store.close();
    console.log([text, toolCalls.length + ' call', status].join(', '));
  }
`;

function linesOf(app: string, file: string): readonly string[] {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], {
    cwd: app,
    encoding: 'utf8',
    env: ownEnv(),
  });
  expect(status, stderr).toBe(0);
  return stdout.trim().split('\n');
}
