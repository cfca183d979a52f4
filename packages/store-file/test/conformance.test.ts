/** The file store keeps every promise that it claims. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { testPorts } from '@lousho/testing';
import { registerConformance } from '@lousho/testing/conformance';
import { describe, it } from 'vitest';
import { fileNameOf } from '../src/file-names.ts';
import { fileStore } from '../src/index.ts';

registerConformance(
  {
    name: 'store-file',
    claims: { leases: 'atomic', history: true, list: true, durable: 'process', consistency: 'strong' },
    historyLimit: 50,
    async createStorage(clock) {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-file-'));
      return {
        open: async () => fileStore(folder, { durability: 'process', ports: testPorts(clock) }),
        destroy: async () => fs.rmSync(folder, { recursive: true }),
        corrupt: async (id) => damage(newestLog(path.join(folder, 'runs', fileNameOf(id)))),
        corruptSession: async (id) => damage(newestLog(path.join(folder, 'sessions', fileNameOf(id)))),
        corruptApproval: async (id) => damage(path.join(folder, 'approvals', `${fileNameOf(id)}.json`)),
      };
    },
  },
  { describe, it },
);

function newestLog(folder: string): string {
  const logs = fs.readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  return path.join(folder, logs.sort().at(-1) ?? '');
}

/** One bit of it. */
function damage(file: string): void {
  const bytes = fs.readFileSync(file);
  const at = bytes.indexOf('"u":') + 5;
  bytes[at > 4 ? at : 20] = (bytes[at > 4 ? at : 20] ?? 0) ^ 1;
  fs.writeFileSync(file, bytes);
}
