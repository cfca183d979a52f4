// An empty project of a user: installs one package from the registry, and runs the program of that package in it.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { transform } from 'esbuild';
import { offerPrebuilds, keepPrebuild } from '../prebuilds.mjs';
import { run } from './run.mjs';
import { answerOfWorker } from './workerd.mjs';

export const moduleResolutions = ['node16', 'nodenext', 'bundler'];

/** @returns its folder */
export async function installProject(folder, registry, packages, options = []) {
  mkdirSync(folder, { recursive: true });
  const allowScripts = { 'better-sqlite3': true, esbuild: true };
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ private: true, allowScripts }));
  writeFileSync(path.join(folder, '.npmrc'), registry.npmrc);
  await install(folder, [...options, ...packages]);
  return folder;
}

/** What its manifest says, or these packages. */
export async function install(folder, args = []) {
  offerPrebuilds(folder);
  await run('npm', ['install', '--no-audit', '--no-fund', ...args], { cwd: folder });
  keepPrebuild(path.join(folder, 'node_modules'));
}

/** Imported and required, as a text that says what it printed. @throws when it fails or prints something else */
export async function runProgram(folder, { source, prints }, format, node) {
  const { code } = await transform(source, { loader: 'ts', format, target: 'node20' });
  const file = format === 'esm' ? 'program.mjs' : 'program.cjs';
  const call = `${format === 'esm' ? 'main' : 'module.exports.main'}().then(console.log);`;
  writeFileSync(path.join(folder, file), `${code}\n${call}\n`);
  expectSame((await run(node.binary, [file], { cwd: folder, timeoutMs: 60_000 })).trim(), prints);
}

/** A native module is compiled for one Node; the others need it again. */
export async function compileFor(folder, node) {
  const nodeModules = path.join(folder, 'node_modules');
  if (!existsSync(path.join(nodeModules, 'better-sqlite3'))) return;
  await run('npm', ['rebuild', 'better-sqlite3'], { cwd: folder, env: node.env });
  keepPrebuild(
    nodeModules,
    (await run(node.binary, ['-p', 'process.versions.modules'], { cwd: folder })).trim(),
  );
}

/** Every declaration is read, none of them trusted. What a user of Node has beside it: its types. */
export async function typeCheck(folder, { source }, moduleResolution, tools) {
  // TypeScript lets CommonJS require an ES module under `nodenext` alone.
  const files = moduleResolution === 'nodenext' ? ['program.mts', 'program.cts'] : ['program.mts'];
  for (const file of files) writeFileSync(path.join(folder, file), source);
  const compilerOptions = {
    module: moduleResolution === 'bundler' ? 'esnext' : moduleResolution,
    moduleResolution,
    ...{ strict: true, noEmit: true, skipLibCheck: false, target: 'es2022', lib: ['es2022', 'dom'] },
    ...{ types: ['node'], typeRoots: [path.join(tools, '@types')] },
  };
  const config = `tsconfig.${moduleResolution}.json`;
  writeFileSync(path.join(folder, config), JSON.stringify({ compilerOptions, files }));
  await run(process.execPath, [path.join(tools, 'typescript/bin/tsc'), '-p', config], { cwd: folder });
}

export async function runInWorkerd(folder, { source, prints }) {
  writeFileSync(
    path.join(folder, 'worker.ts'),
    `${source}\nexport default { fetch: async () => new Response(await main()) };\n`,
  );
  expectSame(await answerOfWorker(path.join(folder, 'worker.ts')), prints);
}

/** Every command that it brings says which version it is. */
export async function runCommands(folder, { bin = {}, version }) {
  for (const command of Object.keys(bin))
    expectSame((await run('npx', ['--no-install', command, '--version'], { cwd: folder })).trim(), version);
}

function expectSame(printed, expected) {
  if (printed !== expected) throw new Error(`It printed "${printed}" instead of "${expected}".`);
}
