/** What `list` and `listHeaders` show: from the keys and what stands beside them, with a get only where that is not enough. */
import {
  checkpointHeader,
  compareSaves,
  listCheckpoints,
  matchesStatus,
  SDKError,
  storedError,
  type Checkpoint,
  type CheckpointHeaderEntry,
  type CheckpointListEntry,
  type ListOptions,
} from '@lousho/contract';
import { inSlices, type KVClient } from './kv-client.ts';
import type { KVKeys } from './kv-keys.ts';
import { readMetadata, type ListedRun } from './run-metadata.ts';
import type { Head } from './record-text.ts';
import type { TranscriptRecords } from './transcript-records.ts';
import { extentOf } from './transcript-chunks.ts';

interface FoundRun {
  readonly id: string;
  /** Absent: written by a release that put nothing beside the key. */
  readonly listed: ListedRun | undefined;
}

export class KVLists {
  constructor(
    private readonly client: KVClient,
    private readonly keys: KVKeys,
    private readonly records: TranscriptRecords<Checkpoint>,
  ) {}

  async list(options: ListOptions = {}): Promise<CheckpointListEntry[]> {
    const runs = await this.#find(options);
    const entries = await inSlices(runs, async ({ id }): Promise<CheckpointListEntry[]> => {
      try {
        const checkpoint = await this.records.look(id);
        // Deleted since it was listed.
        return checkpoint === undefined ? [] : [{ sessionId: id, status: checkpoint.status, checkpoint }];
      } catch (error) {
        return [{ sessionId: id, status: 'in-progress', checkpoint: null, error: damageIn(error) }];
      }
    });
    return listCheckpoints(entries.flat(), options);
  }

  async headers(options: ListOptions = {}): Promise<CheckpointHeaderEntry[]> {
    const runs = await this.#find(options);
    const entries = await inSlices(runs, ({ id, listed }) => this.#header(id, listed));
    return entries
      .flat()
      .filter(({ status }) => matchesStatus(status, options))
      .sort((a, b) => compareSaves(a.header?.savedAt, a.sessionId, b.header?.savedAt, b.sessionId));
  }

  async #header(id: string, listed: ListedRun | undefined): Promise<CheckpointHeaderEntry[]> {
    if (listed?.header !== undefined)
      return [{ sessionId: id, status: listed.status, header: listed.header }];
    try {
      const head = await this.records.headOf(id);
      return head === undefined ? [] : [{ sessionId: id, status: head.value.status, header: headerOf(head) }];
    } catch (error) {
      return [{ sessionId: id, status: 'in-progress', header: null, error: damageIn(error) }];
    }
  }

  /** Runs that may have the status. Those that have another one by now are taken out once they are read. */
  async #find(options: ListOptions): Promise<FoundRun[]> {
    const runs: FoundRun[] = [];
    for (const { name, metadata } of await this.client.keys(this.keys.prefix)) {
      const key = this.keys.parse(name);
      if (key.kind !== 'run') continue;
      const listed = readMetadata(metadata);
      if (listed === undefined || matchesStatus(listed.status, options)) runs.push({ id: key.id, listed });
    }
    return runs;
  }
}

/** The header of a record whose transcript is not put together. */
function headerOf({ chunks, value }: Head<Checkpoint>) {
  const header = checkpointHeader(value);
  return { ...header, messageCount: extentOf(chunks).messages + header.messageCount };
}

/** What an operator sees in the list. A namespace that does not answer is no damage of this run: then there is no list. */
function damageIn(error: unknown) {
  if (error instanceof SDKError) return storedError(error);
  throw error;
}
