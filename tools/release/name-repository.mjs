// Writes where the repository is into every manifest. npm turns the relative links of a README into links to the repository, and needs to know
// for that where it is and which folder the package has in it.
//
//   node tools/release/name-repository.mjs git+https://<host>/<owner>/<name>.git    once, when its public address is known or changes
//   node tools/release/name-repository.mjs --check                                  before a release: ends with 1 when there is none
import path from 'node:path';
import { publicPackages, readManifest, writeManifest } from './packages.mjs';

export function nameRepository(root, url) {
  const repository = { type: 'git', url };
  writeManifest(root, withRepository(readManifest(root), repository));
  for (const { folder, manifest } of publicPackages(root))
    writeManifest(path.join(root, folder), withRepository(manifest, { ...repository, directory: folder }));
}

/** Behind the licence, where people look for it. */
function withRepository({ repository: _before, ...manifest }, repository) {
  const entries = Object.entries(manifest);
  const place = 1 + entries.findIndex(([key]) => key === 'license');
  return Object.fromEntries([
    ...entries.slice(0, place),
    ['repository', repository],
    ...entries.slice(place),
  ]);
}

if (process.argv[1] === import.meta.filename) {
  const root = path.resolve(import.meta.dirname, '../..');
  const [wanted = '--check'] = process.argv.slice(2);
  if (wanted !== '--check') nameRepository(root, new URL(wanted).href);
  else if (readManifest(root).repository === undefined) {
    console.error(
      'package.json names no repository, so npm cannot show the links of the READMEs.\n' +
        'Name it once: node tools/release/name-repository.mjs git+https://<host>/<owner>/<name>.git',
    );
    process.exitCode = 1;
  }
}
