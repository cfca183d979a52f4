// The versions of Node that users have. npm has each as a package for the platform, with its headers, so that native modules can be compiled.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { cacheFolder } from '../prebuilds.mjs';
import { run } from './run.mjs';

/** Of each major, the version whose package is complete for Linux and macOS. */
const versions = { 20: '20.20.2', 22: '22.23.5', 24: '24.22.3' };

/** @returns `[{ major, binary, env } | { major, missing }]`, where `env` makes npm run and compile for that Node */
export async function findNodes() {
  return Promise.all(Object.keys(versions).map(findNode));
}

async function findNode(major) {
  if (process.versions.node.split('.')[0] === major) return { major, binary: process.execPath, env: {} };
  const packageName = `node-${process.platform}-${process.arch}`;
  const folder = path.join(cacheFolder(), 'nodes', versions[major]);
  const home = path.join(folder, 'node_modules', packageName);
  const binary = path.join(home, 'bin/node');
  try {
    if (!existsSync(binary)) await install(folder, `${packageName}@${versions[major]}`);
    await run(binary, ['--version'], { cwd: folder });
  } catch (error) {
    return {
      major,
      missing: `npm has no ${packageName}@${versions[major]} for this machine: ${lastLine(error)}`,
    };
  }
  const searchPath = `${path.dirname(binary)}${path.delimiter}${process.env.PATH}`;
  return { major, binary, env: { PATH: searchPath, npm_config_nodedir: home } };
}

async function install(folder, wanted) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'package.json'), '{ "private": true }\n');
  await run('npm', ['install', '--no-audit', '--no-fund', '--no-save', wanted], { cwd: folder });
}

function lastLine(error) {
  return error.message.split('\n').at(-1);
}
