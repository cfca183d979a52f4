/** Nothing outside of the root is read or written, whatever a path says, whatever links there are, whenever one is put there. */
import { execFileSync } from 'node:child_process';
import { renameSync, symlinkSync, unlinkSync } from 'node:fs';
import path from 'node:path';
import type { Tool } from '@lousho/contract';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasDescriptorPaths } from '../src/file-calls.ts';
import { namesBelowRoot } from '../src/workspace-path.ts';
import { makeTools } from '../src/workspace-tools.ts';
import { beforeCall } from './support/interrupted-files.ts';
import { SECRET, TempWorkspace, runTool, treeOf } from './support/temp-workspace.ts';

const ways = hasDescriptorPaths ? [true, false] : [false];

describe.each(ways)('by descriptor: %s', (byDescriptor) => {
  const internals = { byDescriptor };

  it.each([
    ['../outside/file.txt', 'OUTSIDE_WORKSPACE'],
    ['a/../../outside/file.txt', 'OUTSIDE_WORKSPACE'],
    ['/etc/passwd', 'OUTSIDE_WORKSPACE'],
    ['link-to-file', 'SYMBOLIC_LINK'],
    ['link-to-folder/file.txt', 'SYMBOLIC_LINK'],
    ['link-inside/b.txt', 'SYMBOLIC_LINK'],
    ['a\0b', 'INVALID_PATH'],
    ['.', 'NOT_A_FILE'],
    ['a', 'NOT_A_FILE'],
    ['a/b.txt/c', 'NOT_A_FOLDER'],
    ['pipe', 'NOT_A_FILE'],
  ])('refuses %j with %s', async (name, code) => {
    const world = new TempWorkspace({ 'a/b.txt': 'b' });
    symlinkSync(path.join(world.outside, 'file.txt'), world.at('link-to-file'));
    symlinkSync('../outside', world.at('link-to-folder'));
    symlinkSync('a', world.at('link-inside'));
    execFileSync('mkfifo', [world.at('pipe')]);
    const before = treeOf(world.base);
    for (const [tool, args] of [
      ['read_file', { path: name }],
      ['write_file', { path: name, content: 'x' }],
      ['edit_file', { path: name, old_string: 'e', new_string: 'x' }],
    ] as const) {
      await expect(world.call(tool, args, { internals })).rejects.toMatchObject({
        code,
        message: expect.stringMatching(new RegExp(`^${code}: `)),
      });
    }
    expect(treeOf(world.base)).toEqual(before);
  });

  it('takes an absolute path that lies in the root, also by the link that the root was given as', async () => {
    const world = new TempWorkspace({ 'a.txt': 'A' });
    symlinkSync(world.root, path.join(world.base, 'alias'));
    const alias = path.join(world.base, 'alias', 'a.txt');
    expect(await world.call('read_file', { path: world.at('a.txt') }, { internals })).toMatchObject({
      path: 'a.txt',
    });
    const viaAlias = new TempWorkspace();
    Object.assign(viaAlias, { root: path.join(world.base, 'alias') });
    expect(await viaAlias.call('read_file', { path: alias }, { internals })).toMatchObject({ text: 'A' });
  });

  it('reaches nothing outside, for random trees of links and random calls', async () => {
    const name = fc.constantFrom('a', 'b', 'file.txt', 'l1', 'l2', '..', '.', '', 'new');
    const somePath = fc
      .tuple(
        fc.constantFrom('', '/', '../', './', 'BASE/', 'ROOT/', '/proc/self/cwd/'),
        fc.array(name, { minLength: 1, maxLength: 5 }),
      )
      .map(([start, names]) => start + names.join('/'));
    const target = fc.constantFrom(
      '..',
      '../outside',
      '../outside/file.txt',
      'OUTSIDE',
      'OUTSIDE/file.txt',
      '/',
      'a',
      '../a',
      '.',
      'l1',
    );
    const links = fc.array(
      fc.tuple(fc.constantFrom('l1', 'l2', 'a/l1', 'a/l2', 'a/b/l1', 'a/b/l2', 'b'), target),
      { maxLength: 5 },
    );
    const call = fc.tuple(
      fc.constantFrom('read_file', 'write_file', 'edit_file', 'list_dir', 'glob', 'grep'),
      somePath,
    );
    await fc.assert(
      fc.asyncProperty(links, fc.array(call, { minLength: 1, maxLength: 6 }), async (wanted, calls) => {
        const world = new TempWorkspace({ 'a/file.txt': 'inside', 'a/b/file.txt': 'inside' });
        const real = (text: string): string =>
          text.replace('OUTSIDE', world.outside).replace('ROOT', world.root).replace('BASE', world.base);
        for (const [at, to] of wanted) if (!treeOf(world.root).has(at)) symlinkSync(real(to), world.at(at));
        const outside = treeOf(world.outside);
        for (const [tool, raw] of calls) {
          const at = real(raw);
          const args = {
            ...{ path: at, content: 'written', old_string: 'e', new_string: 'written' },
            pattern: tool === 'grep' ? '.' : '**',
          };
          const text = await world.call(tool, args, { internals }).then(JSON.stringify, String);
          expect(text).not.toContain(SECRET);
          expect(text).not.toContain('root:x:');
        }
        expect(treeOf(world.outside)).toEqual(outside);
        expect([...treeOf(world.base).keys()].filter((key) => !/^(root|outside)(\/|$)/.test(key))).toEqual(
          [],
        );
      }),
      { numRuns: 150 },
    );
  });

  it.each([
    ['read_file', { path: 'a/file.txt' }],
    ['write_file', { path: 'a/file.txt', content: 'written' }],
    ['write_file', { path: 'a/new/deep.txt', content: 'written' }],
    ['edit_file', { path: 'a/file.txt', old_string: 'inside', new_string: 'written' }],
    ['grep', { path: 'a', pattern: '.' }],
  ])(
    '%s is not led outside by a link that takes the place of a folder at any moment: %j',
    async (tool, args) => {
      for (let n = 0, isThrough = false; !isThrough; n += 1) {
        const world = new TempWorkspace({ 'a/file.txt': 'inside' });
        const outside = treeOf(world.outside);
        const { files, callCount } = beforeCall(n, () => {
          renameSync(world.at('a'), world.at('moved'));
          symlinkSync(world.outside, world.at('a'));
        });
        const text = await world
          .call(tool, args, { internals: { byDescriptor, files } })
          .then(JSON.stringify, String);
        expect(text).not.toContain(SECRET);
        // Without descriptors a folder may be made where the link leads; nothing is written into it.
        const after = [...treeOf(world.outside)].filter(
          ([key, value]) => byDescriptor || key !== 'new' || value !== '(folder)',
        );
        expect(new Map(after)).toEqual(outside);
        isThrough = callCount() <= n;
        expect(isThrough || n < 500).toBe(true);
      }
    },
  );

  it('replaces a link that takes the place of the file at any moment, or refuses it, and never follows it', async () => {
    for (let n = 0, isThrough = false; !isThrough; n += 1) {
      const world = new TempWorkspace({ 'a/file.txt': 'inside' });
      const outside = treeOf(world.outside);
      const { files, callCount } = beforeCall(n, () => {
        unlinkSync(world.at('a/file.txt'));
        symlinkSync(path.join(world.outside, 'file.txt'), world.at('a/file.txt'));
      });
      const all = { internals: { byDescriptor, files } };
      const text = await world
        .call('edit_file', { path: 'a/file.txt', old_string: 'inside', new_string: 'written' }, all)
        .then(JSON.stringify, String);
      expect(text).not.toContain(SECRET);
      expect(treeOf(world.outside)).toEqual(outside);
      isThrough = callCount() <= n;
    }
  });

  it('keeps the tools out of the folder of the backups, by whatever name it is reached', async () => {
    const world = new TempWorkspace({ 'a.txt': 'A' });
    Object.assign(world, { backups: world.at('.backups') });
    const checkpoints = world.checkpoints();
    const tools = { checkpoints };
    await world.call('write_file', { path: 'a.txt', content: 'B' }, { tools, internals });
    const before = treeOf(world.backups);
    const refused = { code: 'PROTECTED_PATH' };
    await expect(world.call('list_dir', { path: '.backups' }, { tools, internals })).rejects.toMatchObject(
      refused,
    );
    await expect(
      world.call('write_file', { path: '.backups/changes/x', content: 'x' }, { tools, internals }),
    ).rejects.toMatchObject(refused);
    // The same folder under another name, as on a disk that folds case.
    const list = makeTools({ root: world.root, checkpoints }, internals).find(
      ({ name }) => name === 'list_dir',
    );
    renameSync(world.at('.backups'), world.at('.BACKUPS'));
    await expect(runTool(list as Tool, { path: '.BACKUPS' })).rejects.toMatchObject(refused);
    renameSync(world.at('.BACKUPS'), world.at('.backups'));
    expect(await world.call('grep', { pattern: '.' }, { tools, internals })).toEqual({
      matches: [{ path: 'a.txt', line: 1, text: 'B' }],
    });
    expect(treeOf(world.backups)).toEqual(before);
  });
});

describe('on Windows', () => {
  const rules = { roots: ['C:\\work\\root'], isWindows: true };

  it.each([
    '..\\x',
    'a\\..\\..\\x',
    'C:x',
    'D:\\x',
    '\\\\server\\share\\x',
    '\\\\?\\C:\\x',
    '\\x',
    'C:\\work\\root2\\x',
  ])('refuses %j as outside', (name) => {
    expect(() => namesBelowRoot(name, rules)).toThrow(/OUTSIDE_WORKSPACE/);
  });
  it.each(['a.txt:stream', 'NUL', 'a\\con.txt', 'com1', 'a.', 'a ', 'a/b?'])(
    'refuses the name in %j',
    (name) => {
      expect(() => namesBelowRoot(name, rules)).toThrow(/INVALID_PATH/);
    },
  );
  it('takes both slashes, and the root in another case', () => {
    expect(namesBelowRoot('a\\b/c', rules)).toEqual(['a', 'b', 'c']);
    expect(namesBelowRoot('c:\\WORK\\root\\a', rules)).toEqual(['a']);
  });
});
