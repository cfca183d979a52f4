/** The release of Node, and which packages of ours are installed. */
import fs from 'node:fs';
import { resolvePackage } from '../load-module.ts';
import type { Finding } from './finding.ts';

/** The lowest that the packages declare. */
const OLDEST_NODE = [20, 19] as const;

export function checkRuntime(version: string): Finding[] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
  const message = `Node ${version}`;
  if (!isOld) return [{ level: 'fine', topic: 'node', message }];
  return [
    { level: 'wrong', topic: 'node', message, hint: `Lousho needs ${OLDEST_NODE.join('.')} or newer.` },
  ];
}

const ours = [
  'cli',
  'core',
  'executor',
  'contract',
  'store-sqlite',
  'store-file',
  'store-kv',
  'store-memory',
];

export function checkPackages(cwd: string): Finding[] {
  const found = ours.flatMap((name) => {
    const version = versionOf(`@lousho/${name}`, cwd);
    return version === undefined ? [] : [`${name} ${version}`];
  });
  return [{ level: 'fine', topic: 'packages', message: found.join(', ') }];
}

function versionOf(name: string, cwd: string): string | undefined {
  const file = resolvePackage(`${name}/package.json`, cwd);
  if (file === undefined) return undefined;
  return (JSON.parse(fs.readFileSync(file, 'utf8')) as { readonly version: string }).version;
}
