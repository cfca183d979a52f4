/** The inbox of pauses. Who removes a record first is best effort: a claim is written, and read back. */
import {
  assertCheckpointId,
  compareSaves,
  deepFreeze,
  isCheckpointId,
  parseApprovalRecord,
  SDKError,
  type ApprovalRecord,
  type ApprovalStore,
} from '@lousho/contract';
import { seal, unseal } from './checked-text.ts';
import { KeyedQueue } from './keyed-queue.ts';
import { inSlices, type KVClient } from './kv-client.ts';
import { damageError, isDamage, isThrottled } from './kv-errors.ts';
import type { KVKeys } from './kv-keys.ts';
import { bytesOf, MAX_VALUE_BYTES, MIN_TTL_SECONDS } from './kv-namespace.ts';
import type { Operations } from './operations.ts';

export interface ApprovalsDeps {
  readonly operations: Operations;
  readonly client: KVClient;
  readonly keys: KVKeys;
  readonly ttlSeconds: number | undefined;
}

/** What a listed key says about its record. */
export interface ApprovalMetadata {
  readonly checkpointId: string;
  readonly createdAt: string;
  /** Carries its run with it, so it waits by itself. */
  readonly hasSnapshot: boolean;
  readonly sessionId?: string | undefined;
}

/** Between the write of a claim and the look at whose it is. */
const READ_BACK_MS = 50;

export function kvApprovals({ operations, client, keys, ttlSeconds }: ApprovalsDeps): ApprovalStore {
  const removals = new KeyedQueue();
  const read = async (id: string): Promise<ApprovalRecord | null> => {
    const text = await client.get(keys.approval(id));
    return text === undefined ? null : parsed(text, id);
  };
  return {
    save(record) {
      const { id } = record;
      return operations.perform({ name: 'approvals.save', id, kind: 'write' }, async () => {
        assertCheckpointId(id);
        const text = seal({ approval: record });
        const bytes = bytesOf(text);
        if (bytes > MAX_VALUE_BYTES)
          throw new SDKError('LOUSHO_CHECKPOINT_TOO_LARGE', { id, bytes, maxBytes: MAX_VALUE_BYTES });
        // It is put once, and its checkpoint again by the save that waits for it: it must not go first.
        const options = { ttlSeconds: ttlSeconds === undefined ? undefined : 2 * ttlSeconds };
        await client.put(keys.approval(id), text, { ...options, metadata: metadataOf(record) });
      });
    },
    // An id that could not be saved is one that nobody saved: people paste ids, and a wrong one is no error of the store.
    load(id) {
      return operations.perform({ name: 'approvals.load', id, kind: 'read' }, async () =>
        isCheckpointId(id) ? read(id) : null,
      );
    },
    list({ sessionId } = {}) {
      return operations.perform({ name: 'approvals.list', kind: 'read' }, async () => {
        const ids: string[] = [];
        for (const { name, metadata } of await client.keys(keys.allApprovals)) {
          const key = keys.parse(name);
          const listed = metadata as ApprovalMetadata | undefined | null;
          const isAsked = sessionId === undefined || !listed || listed.sessionId === sessionId;
          if (key.kind === 'approval' && isAsked) ids.push(key.id);
        }
        const records = await inSlices(ids, (id) => orLeftOut(read(id)));
        return records
          .filter((record) => record !== null)
          .filter((record) => sessionId === undefined || record.sessionId === sessionId)
          .sort((a, b) => compareSaves(a.createdAt, a.id, b.createdAt, b.id));
      });
    },
    delete(id) {
      return operations.perform({ name: 'approvals.delete', id, kind: 'write' }, async () =>
        isCheckpointId(id) ? removals.run(id, () => remove(client, keys, id)) : false,
      );
    },
  };
}

async function remove(client: KVClient, keys: KVKeys, id: string): Promise<boolean> {
  if ((await client.get(keys.approval(id))) === undefined) return false;
  const claim = client.newTag();
  // 1. The claim. Crash here: the record stays, and can be claimed anew; the claim goes by itself.
  try {
    await client.putOnce(keys.claim(id), claim, { ttlSeconds: MIN_TTL_SECONDS });
  } catch (error) {
    // Two writes in one second: another caller has it, and is removing the record just now.
    if (isThrottled(error)) return false;
    throw error;
  }
  // 2. The look. Of callers at one location the last one to write has it; those at another may not see it.
  await client.pause(READ_BACK_MS);
  const seen = await client.get(keys.claim(id));
  if (seen !== undefined && seen !== claim) return false;
  // 3. The record.
  await client.delete(keys.approval(id));
  return true;
}

function metadataOf({ checkpointId, createdAt, snapshot, sessionId }: ApprovalRecord): ApprovalMetadata {
  return { checkpointId, createdAt, hasSnapshot: snapshot !== undefined, sessionId };
}

function parsed(text: string, id: string): ApprovalRecord {
  try {
    const opened = unseal(text);
    const record =
      opened.kind === 'sealed' ? (opened.fields as { readonly approval: unknown }).approval : opened.value;
    return deepFreeze(parseApprovalRecord(record, id));
  } catch (error) {
    throw error instanceof SDKError ? error : damageError(error, 'approval', id);
  }
}

/** `load` names the damage; the others are listed as ever. */
async function orLeftOut(reading: Promise<ApprovalRecord | null>): Promise<ApprovalRecord | null> {
  try {
    return await reading;
  } catch (error) {
    if (isDamage(error)) return null;
    throw error;
  }
}
