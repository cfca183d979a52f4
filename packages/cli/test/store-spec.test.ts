import path from 'node:path';
import { expect, it } from 'vitest';
import { parseStoreSpec, storeSpecOf } from '../src/store-spec.ts';

const cwd = path.resolve('/srv/app');

it.each([
  ['sqlite:./jobs.db', 'sqlite', 'jobs.db'],
  ['SQLITE:jobs.db', 'sqlite', 'jobs.db'],
  ['file:./runs', 'file', 'runs'],
  ['./store.ts', 'module', 'store.ts'],
  ['stores/main.mjs', 'module', 'stores/main.mjs'],
])('reads %s relative to the folder', (spec, kind, relative) => {
  expect(parseStoreSpec(spec, cwd)).toEqual({ kind, path: path.resolve(cwd, relative) });
});

it('reads the URL of a file', () => {
  expect(parseStoreSpec('file:///var/runs', cwd)).toEqual({ kind: 'file', path: '/var/runs' });
});

it('writes a place the way it is given', () => {
  for (const spec of ['sqlite:./jobs.db', 'file:./a/b', './store.ts'])
    expect(storeSpecOf(parseStoreSpec(spec, cwd), cwd)).toBe(spec);
});

it.each([
  ['postgres://localhost', 'Nobody knows stores "postgres:"'],
  ['jobs.db', 'does not say which kind'],
  ['./runs', 'does not say which kind'],
  ['sqlite:', 'names no place'],
  ['sqlite::memory:', 'names no place'],
])('refuses %s', (spec, message) => {
  expect(() => parseStoreSpec(spec, cwd)).toThrow(message);
});
