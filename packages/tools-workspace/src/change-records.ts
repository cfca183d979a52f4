/** What a change was, as it is stored: one small JSON file a change, written before the file is changed. */
import nodePath from 'node:path';
import { SDKError } from '@lousho/contract';
import { z } from 'zod';
import { listNames, readOwnFile, removeOwnFile, sha256, writeOwnFile, type OwnFolder } from './own-folder.ts';

const FORMAT_VERSION = 1;

const recordSchema = z.object({
  version: z.literal(FORMAT_VERSION),
  /** Counts the changes of this folder, from 1. */
  number: z.int().min(1),
  /** The call's idempotency key: the same when the call is run again. */
  key: z.string(),
  path: z.string(),
  toolName: z.string(),
  toolCallId: z.string(),
  runId: z.string(),
  sessionId: z.string().optional(),
  step: z.int(),
  changedAt: z.string(),
  before: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('absent'), madeFolders: z.array(z.string()) }),
    z.object({ kind: z.literal('file'), sha256: z.string(), bytes: z.int(), mode: z.int() }),
  ]),
  /** Hashes of what the call wrote; more than one when a re-run wrote something else. */
  after: z.array(z.string()).min(1),
});
export type ChangeRecord = z.infer<typeof recordSchema>;

const RECORD_NAME = /^\d{10,}-[0-9a-f]{16}\.json$/;

/** Oldest first. @throws SDKError LOUSHO_STORE_READ_FAILED for a damaged record, LOUSHO_STORE_VERSION_UNSUPPORTED for a newer one. */
export async function readRecords(folder: OwnFolder): Promise<ChangeRecord[]> {
  const records: ChangeRecord[] = [];
  for (const name of (await listNames(folder)).filter((each) => RECORD_NAME.test(each))) {
    const bytes = await readOwnFile(folder, name);
    // Another process rewound it since the names were listed.
    if (bytes !== undefined) records.push(parseRecord(nodePath.join(folder.path, name), bytes));
  }
  return records.sort((one, other) => one.number - other.number || (one.key < other.key ? -1 : 1));
}

export async function writeRecord(folder: OwnFolder, record: ChangeRecord): Promise<void> {
  await writeOwnFile(folder, nameOf(record), Buffer.from(`${JSON.stringify(record)}\n`));
}

export async function removeRecord(folder: OwnFolder, record: ChangeRecord): Promise<void> {
  await removeOwnFile(folder, nameOf(record));
}

function nameOf({ number, key }: ChangeRecord): string {
  return `${String(number).padStart(10, '0')}-${sha256(Buffer.from(key)).slice(0, 16)}.json`;
}

function parseRecord(file: string, bytes: Buffer): ChangeRecord {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch (error) {
    throw damaged(file, error);
  }
  const version: unknown =
    typeof value === 'object' && value !== null ? Reflect.get(value, 'version') : undefined;
  if (typeof version === 'number' && version > FORMAT_VERSION) {
    throw new SDKError('LOUSHO_STORE_VERSION_UNSUPPORTED', { found: version, supported: FORMAT_VERSION });
  }
  const parsed = recordSchema.safeParse(value);
  if (!parsed.success) throw damaged(file, parsed.error);
  return parsed.data;
}

function damaged(file: string, cause: unknown): SDKError {
  const message = `The record of a change "${file}" is damaged. Nothing was done; move the file away to go on without it.`;
  const details = { operation: 'readRecords', id: nodePath.basename(file) };
  return new SDKError('LOUSHO_STORE_READ_FAILED', details, { message, cause, retryable: false });
}
