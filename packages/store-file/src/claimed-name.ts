/**
 * A name for a file where the file system has no links (exFAT and its like), and a rename takes away what was there: the name is claimed
 * first, by a file beside it that only one process can make, and only whoever made that one may rename.
 */
import { platformClock } from '@lousho/contract';
import type { Disk, Published } from './disk.ts';
import { codeOf, isMissing } from './file-errors.ts';

export const CLAIM_SUFFIX = '.claim';
/** How long one process may take between claiming a name and using it. */
const CLAIM_LIFE_MS = 60_000;

/** As `Disk.publish`. */
export async function publishByClaim(disk: Disk, temp: string, target: string): Promise<Published> {
  const claim = target + CLAIM_SUFFIX;
  const beganAtMs = platformClock.wallMs();
  try {
    await disk.fs.close(await disk.open(claim, 'new'));
  } catch (error) {
    await disk.removeQuietly(temp);
    if (isMissing(error)) return 'gone';
    if (codeOf(error) !== 'EEXIST') throw error;
    const stat = await disk.statIfThere(claim);
    // Its process died between claim and rename: that takes microseconds.
    if (stat !== undefined && stat.ageMs > CLAIM_LIFE_MS) await disk.removeQuietly(claim);
    return 'taken';
  }
  try {
    if ((await disk.statIfThere(target)) !== undefined) {
      await disk.removeQuietly(temp);
      return 'taken';
    }
    if (platformClock.wallMs() - beganAtMs > CLAIM_LIFE_MS / 2) {
      await disk.removeQuietly(temp);
      return 'gone';
    }
    await disk.replace(temp, target);
    return 'made';
  } catch (error) {
    if (isMissing(error)) return 'gone';
    throw error;
  } finally {
    await disk.removeQuietly(claim);
  }
}
