// A copy of the checkout in which a release may change manifests and changelogs. It has its own packages, and borrows everything that npm
// installed.
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { run } from './run.mjs';

export async function copyCheckout(root, copy) {
  const listed = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const files = (await run('git', listed, { cwd: root })).split('\0').filter((file) => file !== '');
  for (const file of files)
    if (existsSync(path.join(root, file))) cpSync(path.join(root, file), path.join(copy, file));
  borrowModules(root, copy);
  const workspaces = readdirSync(path.join(copy, 'packages')).map((name) => `packages/${name}`);
  for (const folder of [...workspaces, 'tools/rigs'])
    borrowModules(path.join(root, folder), path.join(copy, folder));
  // Changesets asks git which changeset came with which commit.
  const author = ['-c', 'user.name=check', '-c', 'user.email=check@localhost'];
  await run('git', ['init', '-q', '-b', 'main'], { cwd: copy });
  await run('git', ['add', '-A'], { cwd: copy });
  await run('git', [...author, 'commit', '-qm', 'As it is in the checkout'], { cwd: copy });
}

function borrowModules(from, to) {
  const [source, target] = [from, to].map((folder) => path.join(folder, 'node_modules'));
  if (!existsSync(source)) return;
  mkdirSync(target, { recursive: true });
  for (const name of readdirSync(source)) {
    // What npm linked to the packages of the checkout leads, by the same relative link, to those of the copy.
    if (name === '@lousho')
      cpSync(path.join(source, name), path.join(target, name), { recursive: true, verbatimSymlinks: true });
    // What tools remember between runs is of the checkout.
    else if (!['.cache', '.vite', '.vite-temp'].includes(name))
      symlinkSync(path.join(source, name), path.join(target, name));
  }
}
