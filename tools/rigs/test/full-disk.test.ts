/** The disk is full in the middle of a run: the run rejects with the reason, what was stored stays, and it goes on when there is room. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { describeViolations, findViolations } from '../src/checker.ts';
import { Rig } from '../src/rig.ts';
import type { ScriptedCall } from '../src/worker-process.ts';

const SESSION = 'order-7';
/** Its result is larger than what the last pages of the files have left. */
const held: ScriptedCall = { name: 'held', args: { gate: 'tool', bytes: 32_768 } };
const agent = { script: [[held], []] };

it('rejects with LOUSHO_STORE_WRITE_FAILED on a full disk, and resumes when there is space again', async (test) => {
  const disk = mountSmallDisk();
  if (disk === undefined) {
    console.log('full-disk: skipped, because this user may not mount a file system');
    // Where tests are meant to count, one that cannot run is a failure.
    expect(process.env['CI']).not.toBe('true');
    test.skip();
    return;
  }
  const rig = new Rig('full-disk', { storeFolder: disk });
  const worker = await rig.startReady({ agent, echo: true });
  const reached = worker.line(({ kind }) => kind === 'tool.started');
  const executing = worker.perform(SESSION, { type: 'send', inputId: 'i1' });
  await reached;
  const before = await rig.load(SESSION);

  const filler = fillDisk(disk);
  worker.open('tool');
  const failed = await executing;
  expect(failed).toMatchObject({ type: 'rejected', code: 'LOUSHO_STORE_WRITE_FAILED' });
  expect(failed).toHaveProperty('cause', expect.stringMatching(/full/i));
  expect(await rig.load(SESSION)).toEqual(before);

  fs.rmSync(filler);
  expect(await worker.perform(SESSION, { type: 'resume' })).toMatchObject({ finishReason: 'stop' });
  const finals = new Map([[SESSION, await rig.load(SESSION)]]);
  const evidence = { log: rig.log(), looks: [], finals, leaseTtlMs: 30_000 };
  const violations = findViolations(evidence).filter(({ rule }) => rule !== 'G27: errors are documented');
  expect(describeViolations(violations)).toBe('');
});

/** One megabyte in memory; `undefined` without the right to mount. */
function mountSmallDisk(): string | undefined {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-disk-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]).status === 0;
  onTestFinished(() => {
    // Lazily: a process that is being killed may still have its database open.
    if (mounted) spawnSync('umount', ['-l', folder]);
    fs.rmdirSync(folder);
  });
  return mounted ? folder : undefined;
}

function fillDisk(folder: string): string {
  const filler = path.join(folder, 'filler');
  for (const size of [65_536, 4_096, 1]) {
    try {
      for (;;) fs.appendFileSync(filler, Buffer.alloc(size));
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC');
    }
  }
  return filler;
}
