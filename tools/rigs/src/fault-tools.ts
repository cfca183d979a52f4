/** The programs that make faults: installed where they are missing and this user may, else said to be missing. Never skipped. */
import { spawnSync } from 'node:child_process';

/** Which package of Debian brings it. */
const PACKAGES = {
  strace: 'strace',
  mount: 'mount',
  losetup: 'mount',
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.xfs': 'xfsprogs',
  xfs_io: 'xfsprogs',
  'mkfs.ntfs': 'ntfs-3g',
  'lowntfs-3g': 'ntfs-3g',
} as const;
export type Tool = keyof typeof PACKAGES;

/** @throws when a tool is not to be had, or this user may not mount file systems */
export function requireTools(...tools: readonly Tool[]): void {
  if (process.platform !== 'linux') throw new Error('The fault rigs run on Linux.');
  if (process.getuid?.() !== 0) throw new Error('The fault rigs mount file systems: run them as root.');
  const missing = tools.filter((tool) => !isThere(tool));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((tool) => PACKAGES[tool]))];
  console.log(`installing ${packages.join(', ')}`);
  const install = ['install', '--yes', '--no-install-recommends', ...packages];
  if (!runQuietly('apt-get', install)) {
    runQuietly('apt-get', ['update']);
    runQuietly('apt-get', install);
  }
  const stillMissing = missing.filter((tool) => !isThere(tool));
  if (stillMissing.length > 0)
    throw new Error(
      `These programs are missing: ${stillMissing.join(', ')} (Debian: ${packages.join(', ')}).`,
    );
}

/** @throws with what it wrote when it fails */
export function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? ''}${stdout}${stderr}`.trim());
  return stdout;
}

/** Whether it ended well. */
export function runQuietly(command: string, args: readonly string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  return spawnSync(command, args, { stdio: 'ignore', env }).status === 0;
}

function isThere(tool: Tool): boolean {
  return runQuietly('sh', ['-c', `PATH="$PATH:/usr/sbin:/sbin" command -v ${tool}`]);
}
