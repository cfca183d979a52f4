/** Makes ready what the measurements run on: our built packages, the contestants' packages, a Node 22. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

const bench = import.meta.dirname;
const root = path.resolve(bench, '../..');
const measuredPackages = [
  'contract',
  'executor',
  'core',
  'store-memory',
  'store-file',
  'store-kv',
  'store-sqlite',
];

const needNode22 = { 'ai:7': 'AI SDK 7', 'mastra:durable': 'Mastra', 'mastra:memory': 'Mastra' };

/** @returns the Node binary that a contestant runs on, or why it cannot run here: `{ path } | { missing }` */
export function setUp({ withPeers = false } = {}) {
  run(process.execPath, ['tools/bootstrap.mjs'], root);
  install(bench);
  if (withPeers) install(path.join(bench, 'peers'));
  if (measuredPackages.some(needsBuild)) {
    const projects = measuredPackages.map((name) => `@lousho/${name}`).join(',');
    run(path.join(root, 'node_modules/.bin/nx'), ['run-many', '-t', 'build', '-p', projects], root);
  }
  const node22 = findNode22();
  return (contestant) =>
    contestant in needNode22 ? needed(node22, needNode22[contestant]) : { path: process.execPath };
}

function needed(node, by) {
  return node.missing === undefined ? node : { missing: `${by} needs Node 22, and ${node.missing}` };
}

function install(folder) {
  if (isInstalled(folder)) return;
  // Without scripts: of all contestants only those over better-sqlite3 have one, and they get the driver of the repository.
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], folder);
}

/** npm writes `node_modules/.package-lock.json` at the end of an install. */
function isInstalled(folder) {
  const installed = packagesOf(path.join(folder, 'node_modules/.package-lock.json'));
  return Object.entries(packagesOf(path.join(folder, 'package-lock.json')))
    .filter(([location, { optional }]) => location !== '' && !optional)
    .every(([location, { version }]) => installed[location]?.version === version);
}

/** Of a lock file: location to what is there. */
export function packagesOf(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).packages : {};
}

/** Never built, or older than its sources: what is measured must be what is written. */
function needsBuild(name) {
  const built = path.join(root, 'packages', name, 'dist/index.js');
  if (!existsSync(built)) return true;
  const sources = path.join(root, 'packages', name, 'src');
  const builtAtMs = statSync(built).mtimeMs;
  return readdirSync(sources, { recursive: true }).some(
    (file) => statSync(path.join(sources, file)).mtimeMs > builtAtMs,
  );
}

/** This process's own Node when it is new enough, else the one that npm installed for this platform. */
function findNode22() {
  if (Number(process.versions.node.split('.')[0]) >= 22) return { path: process.execPath };
  const packageName = `node-${process.platform}-${process.arch}`;
  const installed = path.join(bench, 'node_modules', packageName, 'bin/node');
  if (existsSync(installed)) return { path: installed };
  return { missing: `the npm package ${packageName} is not installed` };
}

function run(command, commandArguments, cwd) {
  // An option given to the outer npm, as `-w` or `--omit`, is not meant for this install.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([key]) => !key.startsWith('npm_config_')),
  );
  const { status, error } = spawnSync(command, commandArguments, { cwd, env, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${commandArguments.join(' ')} failed.`, { cause: error });
}
