// Where its prebuilt binary cannot be downloaded, better-sqlite3 compiles for over a minute. So this machine keeps what it compiled, for each
// Node, and offers it to the next install. Imports nothing from npm: `bootstrap.mjs` runs before there is anything.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

const binary = 'build/Release/better_sqlite3.node';

export function cacheFolder() {
  return path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'), 'lousho');
}

/** For installs in this folder and below: prebuild-install reads the file from any folder above the package that it installs. */
export function offerPrebuilds(folder) {
  mkdirSync(prebuildsFolder(), { recursive: true });
  const settings = { 'local-prebuilds': prebuildsFolder() };
  writeFileSync(path.join(folder, '.prebuild-installrc'), JSON.stringify(settings));
}

/** Keeps what was compiled in this `node_modules`; `abi` is `process.versions.modules` of the Node that it was compiled for. */
export function keepPrebuild(nodeModules, abi = process.versions.modules) {
  const sqlite = path.join(nodeModules, 'better-sqlite3');
  if (process.platform === 'win32' || !existsSync(path.join(sqlite, binary))) return;
  const { version } = JSON.parse(readFileSync(path.join(sqlite, 'package.json'), 'utf8'));
  const isMusl = process.platform === 'linux' && !process.report.getReport().header.glibcVersionRuntime;
  const platform = `${process.platform}${isMusl ? 'musl' : ''}-${process.arch}`;
  const archive = path.join(prebuildsFolder(), `better-sqlite3-v${version}-node-v${abi}-${platform}.tar.gz`);
  if (existsSync(archive)) return;
  // Written under another name first: an install that runs at the same time must not read half an archive.
  const half = `${archive}.${process.pid}`;
  const { status } = spawnSync('tar', ['-czf', half, '-C', sqlite, binary]);
  if (status === 0) renameSync(half, archive);
}

function prebuildsFolder() {
  return path.join(cacheFolder(), 'prebuilds');
}
