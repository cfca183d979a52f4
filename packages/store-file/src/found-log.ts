/** What a writer finds where its save belongs. */
import { assertNever, type SDKError } from '@lousho/contract';
import { isDamage } from './file-errors.ts';
import type { Generations } from './generations.ts';
import { knownFrom, type KnownLog, type KnownLogs } from './known-logs.ts';
import type { FolderListing, LogFolder } from './log-folder.ts';
import { stateOf } from './log-reader.ts';

export type FoundLog =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'open'; readonly log: KnownLog }
  /** No log takes the save: the next one has to be made. `damage`: why what is there is lost. */
  | { readonly kind: 'closed'; readonly listing: FolderListing; readonly damage: SDKError | undefined }
  /** The same, and what is there has to go on in it first. */
  | { readonly kind: 'sealed'; readonly listing: FolderListing };

export async function findLog(
  { generations, known: logs }: { readonly generations: Generations; readonly known: KnownLogs },
  folder: LogFolder,
  id: string,
): Promise<FoundLog> {
  const listing = await folder.list();
  if (listing === undefined) return { kind: 'nothing' };
  try {
    const log = await generations.readNewest(folder, id, listing);
    if (log === undefined || log.events.length === 0) return { kind: 'closed', listing, damage: undefined };
    if (log.file.scan.isSealed || log.number < listing.topLease) return { kind: 'sealed', listing };
    const state = log.file.scan.isGone ? undefined : stateOf(log, generations.kind);
    return { kind: 'open', log: await logs.keep(knownFrom(log, state)) };
  } catch (error) {
    if (isDamage(error)) return { kind: 'closed', listing, damage: error };
    throw error;
  }
}

/** The highest generation that a writer would touch. */
export function highestOf(found: FoundLog): number {
  switch (found.kind) {
    case 'nothing':
      // A run that is begun anew is nobody's yet: not that of one whose lease is gone with its files.
      return Infinity;
    case 'open':
      return found.log.number;
    case 'closed':
    case 'sealed':
      return found.listing.top;
    default:
      return assertNever(found);
  }
}
