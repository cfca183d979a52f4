/** A header is read again only when something of its run changed. */
import type { CheckpointHeaderEntry } from '@lousho/contract';
import { expect, it } from 'vitest';
import { KnownHeaders, type HeaderRow } from '../src/known-headers.ts';

function rowOf(id: string, last = '{}'): HeaderRow {
  return [id, 'in-progress', 0, '{}', 1, 7, last, 2];
}

function readerOf(): { read: (row: HeaderRow) => CheckpointHeaderEntry; readonly ids: string[] } {
  const ids: string[] = [];
  return {
    ids,
    read: ([sessionId, status]) => {
      ids.push(sessionId);
      return { sessionId, status, header: null };
    },
  };
}

it('gives the entry of last time while all that is stored is the same', () => {
  const headers = new KnownHeaders();
  const { read, ids } = readerOf();
  const first = headers.entryOf(rowOf('a'), read);
  expect(headers.entryOf(rowOf('a'), read)).toBe(first);
  expect(ids).toEqual(['a']);
});

it.each<[string, (row: HeaderRow) => HeaderRow]>([
  ['status', ([id, , ...rest]) => [id, 'awaiting-approval', ...rest]],
  ['facts', ([id, status, k, , ...rest]) => [id, status, k, '{"a":1}', ...rest]],
  [
    'number of the last event',
    ([id, status, k, facts, sum, , ...rest]) => [id, status, k, facts, sum, 8, ...rest],
  ],
  [
    'last event',
    ([id, status, k, facts, sum, last, , ...rest]) => [id, status, k, facts, sum, last, '[]', ...rest],
  ],
  ['checksum', ([id, status, k, facts, sum, last, data]) => [id, status, k, facts, sum, last, data, 3]],
])('reads it again when its %s is another', (_what, change) => {
  const headers = new KnownHeaders();
  const { read, ids } = readerOf();
  headers.entryOf(rowOf('a'), read);
  headers.entryOf(change(rowOf('a')), read);
  expect(ids).toEqual(['a', 'a']);
});

it('remembers a thousand runs, and none whose events are long', () => {
  const headers = new KnownHeaders();
  const { read, ids } = readerOf();
  const row = (index: number): HeaderRow => rowOf(`run-${index}`);
  for (let index = 0; index < 1_001; index += 1) headers.entryOf(row(index), read);
  headers.entryOf(row(1_000), read);
  headers.entryOf(row(1), read);
  headers.entryOf(row(0), read);
  expect(ids.slice(1_001)).toEqual(['run-0']);

  const long = rowOf('long', 'x'.repeat(8 * 1024));
  headers.entryOf(long, read);
  headers.entryOf(long, read);
  expect(ids.filter((id) => id === 'long')).toHaveLength(2);
});
