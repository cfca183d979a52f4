// Lets the examples ask for the versions that the packages have: `npm run version-packages` calls it behind changesets, which knows
// workspaces only.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { publicPackages, readManifest, writeManifest } from './packages.mjs';

export function setExampleRanges(root) {
  const versions = new Map(publicPackages(root).map(({ name, manifest }) => [name, manifest.version]));
  const examples = path.join(root, 'docs/examples');
  for (const folder of readdirSync(examples).map((name) => path.join(examples, name))) {
    if (!existsSync(path.join(folder, 'package.json'))) continue;
    const manifest = readManifest(folder);
    for (const kind of ['dependencies', 'devDependencies'])
      for (const name of Object.keys(manifest[kind] ?? {}))
        if (versions.has(name)) manifest[kind][name] = `^${versions.get(name)}`;
    writeManifest(folder, manifest);
  }
}

if (process.argv[1] === import.meta.filename) setExampleRanges(path.resolve(import.meta.dirname, '../..'));
