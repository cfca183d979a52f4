/** The files of a store as another program sees them. */
import fs from 'node:fs';
import path from 'node:path';
import { fileNameOf } from '../../src/file-names.ts';

/** The newest log of a run or a session. */
export function newestLog(folder: string, id: string, root: 'runs' | 'sessions' = 'runs'): string {
  const inside = path.join(folder, root, fileNameOf(id));
  const logs = fs.readdirSync(inside).filter((name) => name.endsWith('.jsonl'));
  return path.join(inside, logs.sort().at(-1) ?? 'none');
}

/** The saves in it, one line each; their content may stand in a line before. */
export function savesIn(file: string): string[] {
  return fs
    .readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{"q":'));
}

/** Bytes of all files below the folder, each counted once however many names it has. */
export function bytesIn(folder: string): number {
  const inodes = new Map<number, number>();
  for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const { ino, size } = fs.statSync(path.join(entry.parentPath, entry.name));
    inodes.set(ino, size);
  }
  return [...inodes.values()].reduce((sum, size) => sum + size, 0);
}

export function leaseFile(folder: string, id: string): string {
  const inside = path.join(folder, 'runs', fileNameOf(id));
  const leases = fs.readdirSync(inside).filter((name) => name.endsWith('.lease'));
  return path.join(inside, leases.sort().at(-1) ?? 'none');
}
