/** Whether a folder lies on a file system that several machines share. A store in files needs what only one kernel sees at a time. */
import fs from 'node:fs';

/** The `f_type` numbers of statfs(2), Linux. */
const NETWORK_TYPES = new Map<number, string>([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x01021997, '9p'],
  // virtiofs reports this one too.
  [0x65735546, 'FUSE'],
]);

/** The kind of network file system, or `undefined` for a local disk and where the platform does not say. */
export function networkKind(fileSystemType: number | undefined): string | undefined {
  // As an unsigned number: 32-bit platforms report the upper half as negative.
  return fileSystemType === undefined ? undefined : NETWORK_TYPES.get(fileSystemType >>> 0);
}

export function fileSystemType(folder: string): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    return fs.statfsSync(folder).type;
  } catch {
    // A sandbox may forbid the question. Then the default holds, as on every platform that cannot tell.
    return undefined;
  }
}
