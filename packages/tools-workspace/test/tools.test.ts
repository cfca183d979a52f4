/** What the file tools give, how they bound it, and what they answer when they cannot. */
import { chmodSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { globFilter } from '../src/glob-pattern.ts';
import { keepEnds } from '../src/kept-output.ts';
import { workspaceTools } from '../src/index.ts';
import { beforeCall } from './support/interrupted-files.ts';
import { TempWorkspace, runTool } from './support/temp-workspace.ts';

describe('read_file', () => {
  it('gives a page, and where to read on', async () => {
    const world = new TempWorkspace({ 'a.txt': 'one\ntwo\nthree\nfour' });
    expect(await world.call('read_file', { path: 'a.txt', line: 2, lines: 2 })).toEqual({
      ...{ path: 'a.txt', text: 'two\nthree', line: 2, totalLines: 4, nextLine: 4 },
    });
    const tools = { limits: { readBytes: 8 } };
    expect(await world.call('read_file', { path: 'a.txt' }, { tools })).toMatchObject({
      text: 'one\ntwo',
      nextLine: 3,
    });
  });

  it('cuts a line that is too long between two characters, and says so', async () => {
    const world = new TempWorkspace({ 'a.txt': 'ab€cd\nnext' });
    const result = await world.call('read_file', { path: 'a.txt' }, { tools: { limits: { readBytes: 4 } } });
    expect(result).toEqual({ path: 'a.txt', text: 'ab', line: 1, totalLines: 2, nextLine: 2, cutLine: 1 });
  });

  it.each([
    ['NOT_TEXT', Buffer.from([0x61, 0xff])],
    ['NOT_TEXT', Buffer.from('a\0b')],
    ['TOO_LARGE', Buffer.alloc(101, 'a')],
  ])('answers %s', async (code, bytes) => {
    const world = new TempWorkspace();
    writeFileSync(world.at('a.bin'), bytes);
    const tools = { limits: { fileBytes: 100 } };
    await expect(world.call('read_file', { path: 'a.bin' }, { tools })).rejects.toMatchObject({
      code,
      path: 'a.bin',
    });
    await expect(world.call('read_file', { path: 'b.bin' }, { tools })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});

describe('write_file', () => {
  it('makes, replaces, and leaves what is the same already', async () => {
    const world = new TempWorkspace();
    const write = (content: string): Promise<unknown> =>
      world.call('write_file', { path: 'x/y/a.txt', content });
    expect(await write('one')).toEqual({ path: 'x/y/a.txt', outcome: 'created', bytes: 3 });
    chmodSync(world.at('x/y/a.txt'), 0o640);
    expect(await write('three')).toMatchObject({ outcome: 'replaced' });
    expect(await write('three')).toMatchObject({ outcome: 'unchanged' });
    expect(world.read('x/y/a.txt')).toBe('three');
    expect(statSync(world.at('x/y/a.txt')).mode & 0o777).toBe(0o640);
    expect(readdirSync(world.at('x/y'))).toEqual(['a.txt']);
  });

  it('writes nothing over what somebody else writes at any moment before it', async () => {
    for (let n = 0, isThrough = false; !isThrough; n += 1) {
      const world = new TempWorkspace({ 'a.txt': 'one' });
      const { files, callCount } = beforeCall(n, () => world.put('a.txt', 'work of a person'));
      const args = { path: 'a.txt', old_string: 'one', new_string: 'two' };
      const text = await world.call('edit_file', args, { internals: { files } }).then(JSON.stringify, String);
      isThrough = callCount() <= n;
      // Between the last look and the rename there is no call to the file system but the rename itself.
      if (world.read('a.txt') === 'two') expect(isThrough || n >= callCount() - 3).toBe(true);
      else
        expect(text + (world.read('a.txt') ?? '')).toMatch(
          /(CHANGED_MEANWHILE|TEXT_NOT_FOUND|edited).*work of a person/,
        );
    }
  });

  it('removes what a write left that was killed, after an hour', async () => {
    const world = new TempWorkspace({ '.lousho-0-1.tmp': 'old', '.lousho-0-2.tmp': 'new' });
    utimesSync(world.at('.lousho-0-1.tmp'), 1, 1);
    expect(await world.call('list_dir', {})).toMatchObject({ entries: [] });
    await world.call('write_file', { path: 'a.txt', content: 'x' });
    expect(readdirSync(world.root)).toEqual(['.lousho-0-2.tmp', 'a.txt']);
  });
});

describe('edit_file', () => {
  const edit = (world: TempWorkspace, oldText: string, newText: string, rerun = false): Promise<unknown> =>
    world.call('edit_file', { path: 'a.txt', old_string: oldText, new_string: newText }, { ctx: { rerun } });

  it('replaces the one place, character by character', async () => {
    const world = new TempWorkspace({ 'a.txt': '\ufeffa$b\r\nc' });
    expect(await edit(world, 'a$b', '$& $1')).toEqual({ path: 'a.txt', outcome: 'edited' });
    expect(world.read('a.txt')).toBe('\ufeff$& $1\r\nc');
  });

  it.each([
    ['aXaX', 'X', 'TEXT_NOT_UNIQUE'],
    ['aaa', 'aa', 'TEXT_NOT_UNIQUE'],
    ['abc', 'X', 'TEXT_NOT_FOUND'],
  ])('in %j refuses %j: %s', async (content, oldText, code) => {
    const world = new TempWorkspace({ 'a.txt': content });
    await expect(edit(world, oldText, 'new')).rejects.toMatchObject({ code });
    expect(world.read('a.txt')).toBe(content);
  });

  it('says of an edit that is there already that it is', async () => {
    const world = new TempWorkspace({ 'a.txt': 'some new text' });
    expect(await edit(world, 'old', 'new')).toEqual({ path: 'a.txt', outcome: 'already-applied' });
    await expect(edit(world, 'old', '')).rejects.toMatchObject({ code: 'TEXT_NOT_FOUND' });
  });

  it('does an edit whose new text holds the old one once, when it runs again', async () => {
    const world = new TempWorkspace({ 'a.txt': 'f();' });
    await edit(world, 'f();', 'f();\ng();');
    expect(await edit(world, 'f();', 'f();\ng();', true)).toMatchObject({ outcome: 'already-applied' });
    expect(world.read('a.txt')).toBe('f();\ng();');
    expect(await edit(world, 'f();', 'f();\ng();')).toMatchObject({ outcome: 'edited' });
  });

  it('counts every one of the edits of one file that a step makes at once', async () => {
    const world = new TempWorkspace({ 'a.txt': 'one two three four' });
    await Promise.all(['one', 'two', 'three', 'four'].map((word) => edit(world, word, word.toUpperCase())));
    expect(world.read('a.txt')).toBe('ONE TWO THREE FOUR');
  });
});

describe('list_dir, glob and grep', () => {
  const files = {
    'src/a.ts': 'let a\r\nlet b',
    'src/deep/b.ts': 'x',
    'c.md': 'let',
    'node_modules/m/i.ts': 'let',
    '.git/x.ts': 'let',
  };

  it('find in order, and leave out what nobody means', async () => {
    const world = new TempWorkspace(files);
    expect(await world.call('glob', { pattern: '*.ts' })).toEqual({ paths: ['src/a.ts', 'src/deep/b.ts'] });
    expect(await world.call('glob', { pattern: '*.ts', path: 'node_modules' })).toEqual({
      paths: ['node_modules/m/i.ts'],
    });
    expect(await world.call('grep', { pattern: '^LET .$', ignore_case: true })).toEqual({
      matches: [
        { path: 'src/a.ts', line: 1, text: 'let a' },
        { path: 'src/a.ts', line: 2, text: 'let b' },
      ],
    });
    expect(await world.call('grep', { pattern: '.', literal: true })).toEqual({ matches: [] });
    expect(await world.call('grep', { pattern: 'let', path: 'c.md' })).toMatchObject({
      matches: [{ line: 1 }],
    });
    expect(await world.call('grep', { pattern: 'let', glob: '*.md' })).toMatchObject({
      matches: [{ path: 'c.md' }],
    });
    expect(await world.call('list_dir', { path: 'src' })).toEqual({
      path: 'src',
      entries: [
        { name: 'a.ts', type: 'file' },
        { name: 'deep', type: 'folder' },
      ],
    });
  });

  it('give no more than their limits, and say that there is more', async () => {
    const world = new TempWorkspace({ 'a.txt': 'x\nx', 'b.txt': 'x', 'c.txt': 'x' });
    const tools = { limits: { matches: 2, entries: 2 } };
    expect(await world.call('glob', { pattern: '*' }, { tools })).toEqual({
      paths: ['a.txt', 'b.txt'],
      isCut: true,
    });
    expect(await world.call('grep', { pattern: 'x' }, { tools })).toMatchObject({
      matches: [{}, {}],
      isCut: true,
    });
    expect(await world.call('list_dir', {}, { tools })).toMatchObject({ omittedEntries: 1 });
    const exact = { limits: { matches: 3 } };
    expect(await world.call('glob', { pattern: '*' }, { tools: exact })).not.toHaveProperty('isCut');
    expect(await world.call('glob', { pattern: '*' }, { tools: { limits: { files: 1 } } })).toMatchObject({
      isCut: true,
    });
  });

  it('end a regular expression that would run for years, and hold nobody up meanwhile', async () => {
    const world = new TempWorkspace({ 'a.txt': `${'a'.repeat(60)}!` });
    let turnCount = 0;
    const interval = setInterval(() => (turnCount += 1), 1);
    const tools = { limits: { searchMs: 200 } };
    await expect(world.call('grep', { pattern: '^(a+)+$' }, { tools })).rejects.toMatchObject({
      code: 'TIMED_OUT',
    });
    clearInterval(interval);
    expect(turnCount).toBeGreaterThan(2);
  });

  it('end when the run is aborted', async () => {
    const world = new TempWorkspace({ 'a.txt': `${'a'.repeat(60)}!` });
    const reason = new Error('stop');
    const ctx = { signal: AbortSignal.abort(reason) };
    await expect(world.call('grep', { pattern: '^(a+)+$' }, { ctx })).rejects.toBe(reason);
    await expect(world.call('glob', { pattern: '*' }, { ctx })).rejects.toBe(reason);
    await expect(world.call('write_file', { path: 'b', content: 'x' }, { ctx })).rejects.toBe(reason);
    expect(readdirSync(world.root)).toEqual(['a.txt']);
  });

  it.each(['(', '[z-a]'])('answer INVALID_PATTERN to the expression %j', async (pattern) => {
    await expect(new TempWorkspace().call('grep', { pattern })).rejects.toMatchObject({
      code: 'INVALID_PATTERN',
    });
  });
});

describe('a glob', () => {
  it.each([
    ['*.ts', 'a.ts', true],
    ['*.ts', 'x/y/a.ts', true],
    ['./*.ts', 'x/a.ts', false],
    ['src/**/*.ts', 'src/a.ts', true],
    ['src/**/*.ts', 'src/x/y/a.ts', true],
    ['src/**', 'src/x/y', true],
    ['src/*', 'src/x/y', false],
    ['**/test/**/a', 'x/test/a', true],
    ['{a,b}.{ts,js}', 'b.js', true],
    ['{a,b}.{ts,js}', 'c.js', false],
    ['{a,{b,c}}x', 'cx', true],
    ['[a-c]?', 'bz', true],
    ['[!a-c]?', 'bz', false],
    ['[]]', ']', true],
    ['a.b', 'axb', false],
    ['a*b*c', 'aXbXbXc', true],
    ['a*b*c', 'aXbXbX', false],
  ])('%s on %s: %s', (pattern, path, expected) => {
    expect(globFilter(pattern)(path.split('/'))).toBe(expected);
  });

  it.each(['', '/etc/*', '../*', 'a/../../b', '[a', '{a,b}'.repeat(7), 'x'.repeat(1_001)])(
    'refuses %j',
    (pattern) => {
      expect(() => globFilter(pattern)).toThrow(/INVALID_PATTERN/);
    },
  );

  it('answers the worst pattern at once', () => {
    const folders = Array<string>(60).fill('a');
    expect(globFilter(`${'**/a/'.repeat(60)}b`)(folders)).toBe(false);
    expect(globFilter(`${'*a'.repeat(200)}b`)(['a'.repeat(250)])).toBe(false);
  });
});

it('keeps the ends of an output, whatever the pieces it comes in', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'binary-ascii' })),
      fc.integer({ min: 1, max: 20 }),
      (pieces, maxBytes) => {
        const kept = keepEnds(maxBytes);
        for (const piece of pieces) kept.add(Buffer.from(piece));
        const whole = pieces.join('');
        const { output, omittedBytes = 0 } = kept.result();
        expect(omittedBytes).toBe(Math.max(0, whole.length - maxBytes));
        if (omittedBytes === 0) expect(output).toBe(whole);
        else {
          expect(output.startsWith(whole.slice(0, Math.ceil(maxBytes / 2)))).toBe(true);
          expect(output.endsWith(whole.slice(whole.length - Math.floor(maxBytes / 2)))).toBe(true);
        }
      },
    ),
  );
});

it('offers only what reads when it is read-only, and no shell when there shall be none', () => {
  const { root } = new TempWorkspace();
  const namesOf = (options: object): string[] => workspaceTools({ root, ...options }).map(({ name }) => name);
  const reading = ['read_file', 'list_dir', 'glob', 'grep'];
  expect(namesOf({ readOnly: true })).toEqual(reading);
  expect(namesOf({ shell: false })).toEqual([...reading, 'write_file', 'edit_file']);
  expect(namesOf({})).toEqual([...reading, 'write_file', 'edit_file', 'shell']);
});

it.each([
  [{ root: '/no/such/folder' }, 'root'],
  [{ limits: { matches: 0 } }, 'limits.matches'],
  [{ shell: { timeoutMs: 0.5 } }, 'shell.timeoutMs'],
  // Each of them would let more happen, or ask fewer people, than was meant.
  [{ readonly: true }, 'readonly'],
  [{ needsApproval: { write_file: true } }, 'needsApproval.write_file'],
  [{ shell: { needApproval: true } }, 'shell.needApproval'],
  [{ limits: { match: 1 } }, 'limits.match'],
])('refuses %j', (options, option) => {
  const { root } = new TempWorkspace();
  expect(() => workspaceTools({ root, ...(options as object) })).toThrow(
    expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID', details: expect.objectContaining({ option }) }),
  );
});

it('names no place of this machine in what it answers', async () => {
  const world = new TempWorkspace({ 'a/b': 'x' });
  for (const path of ['nothing', 'a', 'a/b/c', '../x', 'x'.repeat(300)]) {
    const [tool] = workspaceTools({ root: world.root });
    if (tool === undefined) throw new Error('no tool');
    const error: unknown = await runTool(tool, { path }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'WorkspaceError' });
    expect(String(error)).not.toContain(world.base);
  }
});
