/** Which file an id has. Different ids have different files, also on disks that take `A` for `a` or keep `con` for a device. */
import { createHash } from 'node:crypto';

/** Room for what stands behind a name, below the 143 bytes that encrypted file systems leave of the usual 255. */
const MAX_NAME_LENGTH = 120;
const HASH_LENGTH = 10;
/** Windows opens a device for these, whatever stands behind the first dot. */
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;
/** No id has it, so that a name with a hash is never the plain name of another id. */
const HASH_MARK = '~';

/** The id itself where every file system keeps it as it is; else its small letters, cut, and a hash of it. */
export function fileNameOf(id: string): string {
  const isDevice = DEVICE.test(id);
  if (!isDevice && id.length <= MAX_NAME_LENGTH && /^[a-z0-9_.-]+$/.test(id)) return id;
  const hash = createHash('sha256').update(id).digest('hex').slice(0, HASH_LENGTH);
  const start = id.toLowerCase().slice(0, MAX_NAME_LENGTH - HASH_LENGTH - HASH_MARK.length);
  // Up to the dot: `con.x~hash` would still be the device.
  return `${isDevice ? start.split('.', 1).join('') : start}${HASH_MARK}${hash}`;
}

/** The id that a file name says by itself; `undefined` when it stands only inside. */
export function idOfFileName(name: string): string | undefined {
  return name.includes(HASH_MARK) ? undefined : name;
}
