// The packages that are published, as their manifests say.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** @returns `[{ name, folder, manifest }]`, where `folder` is relative to the root: `packages/core` */
export function publicPackages(root) {
  return readdirSync(path.join(root, 'packages'))
    .sort()
    .map((entry) => `packages/${entry}`)
    .map((folder) => ({ folder, manifest: readManifest(path.join(root, folder)) }))
    .filter(({ manifest }) => manifest.private !== true)
    .map(({ folder, manifest }) => ({ name: manifest.name, folder, manifest }));
}

export function readManifest(folder) {
  return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
}

export function writeManifest(folder, manifest) {
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}
