// Runs before `npm test` and `npm run demo`: installs what package-lock.json asks for when it is not there yet.
// Imports nothing from npm, because in a fresh clone there is nothing.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { keepPrebuild, offerPrebuilds } from './prebuilds.mjs';

const root = path.resolve(import.meta.dirname, '..');

requireNode(20, 19);
if (!isInstalled()) install(['ci', '--no-audit', '--no-fund'], 'installing dependencies');
else if (!sqliteLoads()) install(['rebuild', 'better-sqlite3'], 'rebuilding better-sqlite3 for this Node');

function requireNode(wantedMajor, wantedMinor) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return;
  console.error(`Lousho needs Node ${wantedMajor}.${wantedMinor} or newer; this is ${process.version}.`);
  process.exit(1);
}

/** npm writes `node_modules/.package-lock.json` at the very end of an install: what is listed there is complete. */
function isInstalled() {
  const installed = packagesOf('node_modules/.package-lock.json');
  return Object.entries(packagesOf('package-lock.json'))
    .filter(
      ([location, wanted]) => location.includes('node_modules/') && !wanted.optional && !wanted.devOptional,
    )
    .every(([location, { version, link }]) => {
      const found = installed[location];
      return found !== undefined && (link ? found.link : found.version === version);
    });
}

function packagesOf(lockFile) {
  const file = path.join(root, lockFile);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).packages : {};
}

function sqliteLoads() {
  try {
    const Database = createRequire(import.meta.url)('better-sqlite3');
    new Database(':memory:').close();
    return true;
  } catch {
    // Never compiled, or compiled for another Node: the caller builds it either way.
    return false;
  }
}

function install(npmArguments, what) {
  offerPrebuilds(root);
  const startedAtMs = Date.now();
  console.log(
    `bootstrap: ${what} (npm ${npmArguments.join(' ')}); the first time on a machine takes minutes`,
  );
  const { status } = spawnSync('npm', npmArguments, {
    cwd: root,
    stdio: 'inherit',
    env: environmentForNpm(),
    shell: process.platform === 'win32',
  });
  if (status !== 0) process.exit(status ?? 1);
  keepPrebuild(path.join(root, 'node_modules'));
  console.log(`bootstrap: done in ${((Date.now() - startedAtMs) / 1000).toFixed(1)} s`);
}

/** `npm test -w x` must not narrow the install, nor `npm -s` hide what goes wrong in it. */
function environmentForNpm() {
  const inherited = ['workspace', 'workspaces', 'include_workspace_root', 'loglevel'].map(
    (key) => `npm_config_${key}`,
  );
  return Object.fromEntries(Object.entries(process.env).filter(([key]) => !inherited.includes(key)));
}
