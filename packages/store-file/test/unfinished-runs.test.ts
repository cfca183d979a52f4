/** A list of unfinished runs looks at those that may be unfinished, however many are over. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../src/file-system.ts';
import { finished, inProgress } from './support/fixtures.ts';
import { UNFINISHED, expectMarked } from './support/marks.ts';
import { newestLog } from './support/raw-files.ts';
import { openOn, openStore, tempFolder } from './support/temp-store.ts';

/** A folder with runs that are over and one that is not. */
async function givenRuns(overCount: number): Promise<string> {
  const folder = tempFolder();
  const { checkpoints } = openStore(folder);
  for (let index = 0; index < overCount; index += 1) {
    await checkpoints.save(`over-${index}`, inProgress());
    await checkpoints.save(`over-${index}`, finished());
  }
  await checkpoints.save('open', inProgress());
  return folder;
}

function marksIn(folder: string): string[] {
  return fs.readdirSync(path.join(folder, 'unfinished')).filter((name) => name !== '.complete');
}

async function unfinishedIn(folder: string): Promise<string[]> {
  const entries = await openStore(folder).checkpoints.listHeaders({ status: UNFINISHED });
  return entries.map(({ sessionId }) => sessionId);
}

/** Folders of runs that a list of unfinished ones looks into. */
async function looksOf(folder: string): Promise<string[]> {
  const looks: string[] = [];
  const list: FileSystem['list'] = async (listed) => {
    looks.push(path.relative(path.join(folder, 'runs'), listed));
    return nodeFileSystem.list(listed);
  };
  await openOn({ list }, { folder }).checkpoints.listHeaders({ status: UNFINISHED });
  return looks.filter((name) => name !== '' && !name.startsWith('..'));
}

it('looks into no run that is over, from the second list on', async () => {
  const folder = await givenRuns(20);
  expect(await looksOf(folder)).toHaveLength(21);
  expect(await looksOf(folder)).toEqual(['open']);
});

it('has one mark for each run that is not over, and none for those that are', async () => {
  const folder = await givenRuns(3);
  expect(marksIn(folder)).toEqual(['open.0000000001.1']);
  const { checkpoints } = openStore(folder);
  await checkpoints.save('open', finished());
  expect(marksIn(folder)).toEqual([]);
  await checkpoints.save('open', inProgress({ runId: 'anew' }));
  expect(marksIn(folder)).toEqual(['open.0000000001.3']);
  await checkpoints.delete('open');
  expect(marksIn(folder)).toEqual([]);
});

describe('finds every unfinished run', () => {
  it('in a folder that was written before there were marks', async () => {
    const folder = await givenRuns(2);
    fs.rmSync(path.join(folder, 'unfinished'), { recursive: true });
    expect(await unfinishedIn(folder)).toEqual(['open']);
    expect(await looksOf(folder)).toEqual(['open']);
  });

  it('in a copy that was made while runs began: their marks may be missing', async () => {
    const folder = await givenRuns(2);
    await unfinishedIn(folder);
    const copy = path.join(tempFolder(), 'copy');
    fs.cpSync(folder, copy, { recursive: true });
    fs.rmSync(path.join(copy, 'unfinished', 'open.0000000001.1'));
    expect(await unfinishedIn(copy)).toEqual(['open']);
    expect(await looksOf(copy)).toEqual(['open']);
  });

  it('when its log is damaged, too', async () => {
    const folder = await givenRuns(2);
    await unfinishedIn(folder);
    fs.truncateSync(newestLog(folder, 'open'), 40);
    await expectMarked(openStore(folder));
    expect(await unfinishedIn(folder)).toEqual(['open']);
  });

  it('that was damaged when the marks were made', async () => {
    const folder = await givenRuns(2);
    fs.rmSync(path.join(folder, 'unfinished'), { recursive: true });
    fs.truncateSync(newestLog(folder, 'open'), 40);
    expect(await unfinishedIn(folder)).toEqual(['open']);
    expect(await unfinishedIn(folder)).toEqual(['open']);
    const { checkpoints } = openStore(folder);
    await checkpoints.save('open', inProgress());
    expect(await unfinishedIn(folder)).toEqual(['open']);
    await checkpoints.save('open', finished());
    expect(await unfinishedIn(folder)).toEqual([]);
    expect(marksIn(folder)).toEqual([]);
  });

  it('in a folder that may only be read', async () => {
    const folder = await givenRuns(2);
    fs.rmSync(path.join(folder, 'unfinished'), { recursive: true });
    const refuse = async (): Promise<never> => {
      throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
    };
    const { checkpoints } = openOn({ makeFolder: refuse, makeFolders: refuse, link: refuse }, { folder });
    expect(await checkpoints.listHeaders({ status: UNFINISHED })).toHaveLength(1);
    expect(fs.existsSync(path.join(folder, 'unfinished'))).toBe(false);
  });
});

describe('takes away', () => {
  it('the mark of a run that ended without it: its process died', async () => {
    const folder = await givenRuns(1);
    await unfinishedIn(folder);
    fs.writeFileSync(path.join(folder, 'unfinished', 'over-0.0000000001.1'), '');
    expect(await unfinishedIn(folder)).toEqual(['open']);
    expect(marksIn(folder)).toEqual(['open.0000000001.1']);
  });

  it('the mark of a run that was deleted, and not that of one that is about to begin', async () => {
    const folder = await givenRuns(1);
    await openStore(folder).checkpoints.delete('over-0');
    await unfinishedIn(folder);
    const deletedUpTo = Number(fs.readdirSync(path.join(folder, 'fences'))[0]);
    const about = `over-0.${String(deletedUpTo + 1).padStart(10, '0')}.1`;
    for (const name of ['over-0.0000000001.1', about])
      fs.writeFileSync(path.join(folder, 'unfinished', name), '');
    expect(await unfinishedIn(folder)).toEqual(['open']);
    expect(marksIn(folder)).toEqual(['open.0000000001.1', about]);
  });
});
