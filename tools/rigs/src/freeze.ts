/**
 * `npm run freeze -w @lousho/rigs`: tells the story on every store and keeps what is stored as the next fixtures, under numbers that are
 * free. What was frozen before stays as it is. See CONTRIBUTING.md.
 */
import { appendFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { memoryStore } from '@lousho/store-memory';
import { it } from 'vitest';
import {
  fixtureLines,
  fixtureOf,
  fixturesFile,
  frozenLines,
  frozenNames,
  pathIn,
  recordsFile,
} from './frozen-fixtures.ts';
import { frozenStores, recordsOf, writeJson } from './frozen-stores.ts';
import { stillClock, stillPorts } from './still-clock.ts';
import { tellStory, TOLD_AT_MS } from './stored-story.ts';

it('freezes what is stored today', async () => {
  const name = `stored-${(await frozenNames()).length + 1}`;
  const clock = stillClock(TOLD_AT_MS);
  const memory = memoryStore({ ports: stillPorts(clock, 'stor') });
  await tellStory(memory, clock);
  await writeJson(recordsFile(name), await recordsOf(memory));
  for (const frozen of frozenStores) {
    const folder = await mkdtemp(path.join(tmpdir(), 'lousho-freeze-'));
    const ownClock = stillClock(TOLD_AT_MS);
    const opened = await frozen.open(folder, stillPorts(ownClock, 'stor'));
    await tellStory(opened.store, ownClock);
    const fixture = fixtureOf(frozen, name);
    await mkdir(path.dirname(fixture), { recursive: true });
    await opened.freezeAt(fixture);
    await rm(folder, { recursive: true });
  }
  // Only what is not named yet: whatever was changed since it was frozen has to show.
  const listed = new Set((await frozenLines()).map(pathIn));
  const added = (await fixtureLines()).filter((line) => !listed.has(pathIn(line)));
  await appendFile(fixturesFile, added.map((line) => `${line}\n`).join(''));
});
