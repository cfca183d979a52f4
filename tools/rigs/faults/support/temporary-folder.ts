/** A folder that is gone when the test is over, unless `LOUSHO_KEEP` is set. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';

export function temporaryFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-fault-'));
  onTestFinished(() => {
    if (process.env['LOUSHO_KEEP'] === undefined) fs.rmSync(folder, { recursive: true, force: true });
    else console.log(`Kept in ${folder}`);
  });
  return folder;
}
