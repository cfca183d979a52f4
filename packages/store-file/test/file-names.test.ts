/** Names of files: one for each id, on every file system. */
import fc from 'fast-check';
import { isCheckpointId } from '@lousho/contract';
import { expect, it } from 'vitest';
import { fileNameOf, idOfFileName } from '../src/file-names.ts';

const id = fc.stringMatching(/^[A-Za-z0-9_-](?:[A-Za-z0-9_.-]{0,298}[A-Za-z0-9_-])?$/);
/** Short ones of few characters, so that two of them often differ in case alone. */
const similarId = fc.stringMatching(/^[aA]{1,3}(?:\.[xX]{1,2})?$/);

it('keeps ids apart, also where case does not count', () => {
  fc.assert(
    fc.property(fc.oneof(id, similarId), fc.oneof(id, similarId), (a, b) => {
      fc.pre(a !== b);
      expect(fileNameOf(a).toLowerCase()).not.toBe(fileNameOf(b).toLowerCase());
    }),
    { numRuns: 2_000 },
  );
});

it('has only characters, lengths and ends that every file system takes', () => {
  fc.assert(
    fc.property(id, (one) => {
      const name = fileNameOf(one);
      expect(name).toMatch(/^[a-z0-9_-][a-z0-9_.~-]*$/);
      expect(name).not.toMatch(/[.~]$/);
      expect(name.length).toBeLessThanOrEqual(120);
      expect(name.split('.', 1)[0]).not.toMatch(/^(?:con|prn|aux|nul|com\d|lpt\d)$/);
    }),
  );
});

it('is the id where that can be, so that a person finds the file', () => {
  for (const plain of ['order-7', 'chat.turn-3', 'a_b.c', '0', '-x', 'x'.repeat(120), 'console', 'com10'])
    expect([fileNameOf(plain), idOfFileName(fileNameOf(plain))]).toEqual([plain, plain]);
});

it.each([
  'con',
  'prn',
  'aux',
  'nul',
  'com1',
  'com9',
  'lpt1',
  'lpt9',
  'con.x',
  'nul.tar.gz',
  'COM1',
  'Aux.txt',
])('takes no name of a device for %s', (device) => {
  expect(isCheckpointId(device)).toBe(true);
  expect(fileNameOf(device)).toMatch(/^[a-z]{3}\d?~[0-9a-f]{10}$/);
  expect(idOfFileName(fileNameOf(device))).toBeUndefined();
});

it('cuts long ids and says which they are by a hash', () => {
  const [one, two] = ['x'.repeat(299) + 'a', 'x'.repeat(299) + 'b'];
  expect(fileNameOf(one)).toMatch(/^x{109}~[0-9a-f]{10}$/);
  expect(fileNameOf(one)).not.toBe(fileNameOf(two));
  expect(fileNameOf('Alice')).toMatch(/^alice~[0-9a-f]{10}$/);
});
