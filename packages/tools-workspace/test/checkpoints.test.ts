/** What the tools changed can be taken back, also when a crash cut the change or the rewind off. */
import { chmodSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { manualClock, testPorts } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { diesAt } from './support/interrupted-files.ts';
import { TempWorkspace, treeOf } from './support/temp-workspace.ts';

const nothing = { dryRun: false, restored: [], deleted: [], unchanged: [], skipped: [] };

describe('rewind', () => {
  it('gives files their content and their mode back, and removes what was made, with its folders', async () => {
    const world = new TempWorkspace({ 'run.sh': 'one', 'src/kept.ts': 'kept' });
    chmodSync(world.at('run.sh'), 0o755);
    const before = treeOf(world.root);
    const checkpoints = world.checkpoints();
    const tools = { checkpoints };
    await world.call('edit_file', { path: 'run.sh', old_string: 'one', new_string: 'two' }, { tools });
    await world.call('write_file', { path: 'run.sh', content: 'three' }, { tools });
    await world.call('write_file', { path: 'src/new/deep/x.ts', content: 'x' }, { tools });
    expect(statSync(world.at('run.sh')).mode & 0o777).toBe(0o755);
    rmSync(world.at('run.sh'));
    writeFileSync(world.at('run.sh'), 'three', { mode: 0o600 });

    expect(await checkpoints.rewind()).toEqual({
      ...nothing,
      restored: ['run.sh'],
      deleted: ['src/new/deep/x.ts'],
    });
    expect(treeOf(world.root)).toEqual(before);
    expect(statSync(world.at('run.sh')).mode & 0o777).toBe(0o755);
    expect(await checkpoints.list()).toEqual([]);
  });

  it('goes back to a change, and leaves the earlier ones', async () => {
    const world = new TempWorkspace({ 'a.txt': '1' });
    const tools = { checkpoints: world.checkpoints() };
    for (const content of ['2', '3', '4'])
      await world.call('write_file', { path: 'a.txt', content }, { tools });
    const changes = await tools.checkpoints.list();
    expect(changes.map(({ path: at, before }) => [at, before])).toEqual(Array(3).fill(['a.txt', 'file']));
    await tools.checkpoints.rewind({ to: changes[1]?.number });
    expect(world.read('a.txt')).toBe('2');
    await tools.checkpoints.rewind();
    expect(world.read('a.txt')).toBe('1');
  });

  it('skips a file that somebody else changed since, unless it is forced', async () => {
    const world = new TempWorkspace({ 'theirs.txt': '1', 'ours.txt': '1' });
    const checkpoints = world.checkpoints();
    const tools = { checkpoints };
    await world.call('write_file', { path: 'theirs.txt', content: '2' }, { tools });
    await world.call('write_file', { path: 'ours.txt', content: '2' }, { tools });
    world.put('theirs.txt', 'work of a person');

    const skipped = [{ path: 'theirs.txt', reason: 'changed-since' }];
    expect(await checkpoints.rewind()).toEqual({ ...nothing, restored: ['ours.txt'], skipped });
    expect(world.read('theirs.txt')).toBe('work of a person');
    expect(await checkpoints.rewind({ force: true })).toEqual({ ...nothing, restored: ['theirs.txt'] });
    expect(world.read('theirs.txt')).toBe('1');
  });

  it('goes back no further than to what somebody else wrote in between', async () => {
    const world = new TempWorkspace({ 'a.txt': '1' });
    const checkpoints = world.checkpoints();
    await world.call('write_file', { path: 'a.txt', content: '2' }, { tools: { checkpoints } });
    world.put('a.txt', 'work of a person');
    await world.call('write_file', { path: 'a.txt', content: '3' }, { tools: { checkpoints } });
    expect(await checkpoints.rewind()).toMatchObject({
      restored: ['a.txt'],
      skipped: [{ path: 'a.txt', reason: 'changed-since' }],
    });
    expect(world.read('a.txt')).toBe('work of a person');
  });

  it('changes nothing in a dry run, and says what a real one does', async () => {
    const world = new TempWorkspace({ 'a.txt': '1' });
    const checkpoints = world.checkpoints();
    await world.call('write_file', { path: 'a.txt', content: '2' }, { tools: { checkpoints } });
    await world.call('write_file', { path: 'b.txt', content: '2' }, { tools: { checkpoints } });
    const before = treeOf(world.base);
    const dry = await checkpoints.rewind({ dryRun: true });
    expect(treeOf(world.base)).toEqual(before);
    expect({ ...dry, dryRun: false }).toEqual(await checkpoints.rewind());
  });

  it('takes back one session and leaves the others', async () => {
    const world = new TempWorkspace();
    const checkpoints = world.checkpoints();
    for (const sessionId of ['ada', 'bob'])
      await world.call(
        'write_file',
        { path: `${sessionId}.txt`, content: 'x' },
        { tools: { checkpoints }, ctx: { sessionId } },
      );
    expect(await checkpoints.rewind({ sessionId: 'ada' })).toMatchObject({ deleted: ['ada.txt'] });
    expect((await checkpoints.list()).map((change) => change.sessionId)).toEqual(['bob']);
    expect(world.read('bob.txt')).toBe('x');
  });

  it.each([
    [
      'a link',
      'not-a-file',
      (world: TempWorkspace) => symlinkSync(path.join(world.outside, 'file.txt'), world.at('a.txt')),
    ],
    [
      'a damaged backup',
      'backup-damaged',
      (world: TempWorkspace) => {
        world.put('a.txt', '2');
        const contents = path.join(world.backups, 'contents');
        for (const name of readdirSync(contents)) writeFileSync(path.join(contents, name), 'damage');
      },
    ],
  ])('leaves %s alone, also when it is forced', async (_, reason, spoil) => {
    const world = new TempWorkspace({ 'a.txt': '1' });
    const checkpoints = world.checkpoints();
    await world.call('write_file', { path: 'a.txt', content: '2' }, { tools: { checkpoints } });
    rmSync(world.at('a.txt'));
    spoil(world);
    const before = treeOf(world.base);
    expect(await checkpoints.rewind({ force: true })).toEqual({
      ...nothing,
      skipped: [{ path: 'a.txt', reason }],
    });
    expect(treeOf(world.base)).toEqual(before);
  });

  it('does nothing when a record is damaged, and names it', async () => {
    const world = new TempWorkspace({ 'a.txt': '1' });
    const checkpoints = world.checkpoints();
    await world.call('write_file', { path: 'a.txt', content: '2' }, { tools: { checkpoints } });
    const [name = ''] = readdirSync(path.join(world.backups, 'changes'));
    writeFileSync(path.join(world.backups, 'changes', name), '{"version":1');
    await expect(checkpoints.rewind()).rejects.toMatchObject({
      code: 'LOUSHO_STORE_READ_FAILED',
      details: { id: name },
    });
    writeFileSync(path.join(world.backups, 'changes', name), '{"version":2}');
    await expect(checkpoints.rewind()).rejects.toMatchObject({ code: 'LOUSHO_STORE_VERSION_UNSUPPORTED' });
    expect(world.read('a.txt')).toBe('2');
  });
});

describe('after a crash', () => {
  it('the content from before is there whenever the file is changed, and the first one stays over re-runs', async () => {
    for (let n = 0, isThrough = false; !isThrough; n += 1) {
      const world = new TempWorkspace({ 'a.txt': 'original' });
      const ctx = { idempotencyKey: 'the-call' };
      const { files, hasDied } = diesAt(n);
      const args = { path: 'a.txt', old_string: 'original', new_string: 'original and more' };
      await world
        .call('edit_file', args, {
          tools: { checkpoints: world.checkpoints({ files }) },
          internals: { files },
          ctx,
        })
        .catch(String);
      const contentAfterCrash = world.read('a.txt');
      expect(['original', 'original and more']).toContain(contentAfterCrash);
      const checkpoints = world.checkpoints();
      if (contentAfterCrash !== 'original')
        expect(await checkpoints.rewind({ dryRun: true })).toMatchObject({ restored: ['a.txt'] });

      const result = await world.call('edit_file', args, {
        tools: { checkpoints },
        ctx: { ...ctx, rerun: true },
      });
      expect(result).toEqual({
        path: 'a.txt',
        outcome: contentAfterCrash === 'original' ? 'edited' : 'already-applied',
      });
      expect(world.read('a.txt')).toBe('original and more');
      expect(await checkpoints.list()).toHaveLength(1);
      expect(await checkpoints.rewind()).toMatchObject({ restored: ['a.txt'], skipped: [] });
      expect(world.read('a.txt')).toBe('original');
      isThrough = !hasDied();
      expect(isThrough || n < 500).toBe(true);
    }
  });

  it('a rewind that was cut off at any call is finished by the next one', async () => {
    for (let n = 0, isThrough = false; !isThrough; n += 1) {
      const world = new TempWorkspace({ 'a.txt': '1' });
      const before = treeOf(world.root);
      const tools = { checkpoints: world.checkpoints() };
      for (const content of ['2', '3']) await world.call('write_file', { path: 'a.txt', content }, { tools });
      await world.call('write_file', { path: 'new/c.txt', content: 'x' }, { tools });
      const { files, hasDied } = diesAt(n);
      await world.checkpoints({ files }).rewind().catch(String);
      isThrough = !hasDied();
      expect(isThrough || n < 1_000).toBe(true);

      const again = world.checkpoints();
      expect(await again.rewind()).toMatchObject({ skipped: [] });
      expect(await again.list()).toEqual([]);
      const visible = [...treeOf(world.root)].filter(([name]) => !name.endsWith('.tmp'));
      expect(new Map(visible)).toEqual(before);
      expect(await world.call('glob', { pattern: '*.tmp' })).toEqual({ paths: [] });
    }
  });
});

it('forgets old changes and the contents that no change needs', async () => {
  const clock = manualClock(Date.now());
  const world = new TempWorkspace({ 'a.txt': '1', 'b.txt': '2' });
  const checkpoints = world.checkpoints({ ports: testPorts(clock) });
  await world.call('write_file', { path: 'a.txt', content: 'x' }, { tools: { checkpoints } });
  await clock.advance(2 * 3_600_000);
  await world.call('write_file', { path: 'b.txt', content: 'x' }, { tools: { checkpoints } });
  expect(await checkpoints.prune({ olderThanMs: 3_600_000 })).toEqual({ changes: 1, backups: 1 });
  expect(await checkpoints.rewind()).toMatchObject({ restored: ['b.txt'] });
  expect([world.read('a.txt'), world.read('b.txt')]).toEqual(['x', '2']);
});

it('refuses a folder for backups that holds the root, and checkpoints of another root', () => {
  const world = new TempWorkspace();
  const other = new TempWorkspace();
  Object.assign(world, { backups: world.base });
  expect(() => world.checkpoints()).toThrow(/dir/);
  expect(() => world.call('glob', { pattern: '*' }, { tools: { checkpoints: other.checkpoints() } })).toThrow(
    /checkpoints/,
  );
});
