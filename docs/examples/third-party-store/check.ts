/** The conformance suite asks the store for what it claims, and says which promise it breaks. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { check } from '@lousho/testing/conformance';
import { fileOf, jsonFiles } from './json-files.ts';

const { passed, results } = await check({
  name: 'json files',
  claims: { leases: 'none', history: false, list: false, durable: 'process', consistency: 'strong' },
  async createStorage() {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'json-files-'));
    return {
      open: async () => jsonFiles(folder),
      destroy: () => rm(folder, { recursive: true }),
      corrupt: (id) => writeFile(fileOf(folder, id), '{ "version": 1'),
    };
  },
});

for (const { failure } of results) if (failure) console.log(`${failure.message}\n`);
console.log(passed ? 'It keeps every promise that it claims.' : 'It breaks a promise.');
process.exitCode = passed ? 0 : 1;
