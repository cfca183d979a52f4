/** Stores in a folder that goes with the test, and a look at their files past them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  resolvePorts,
  resolveStoreOptions,
  type FullAgentStore,
  type Ports,
  type StoreOptions,
} from '@lousho/contract';
import { onTestFinished } from 'vitest';
import { fileStore, type FileStoreOptions } from '../../src/index.ts';
import { nodeFileSystem, type FileSystem } from '../../src/file-system.ts';
import type { ThreadCalls } from '../../src/quick-calls.ts';
import { storeParts, type StoreParts } from '../../src/store-parts.ts';

/** A new folder, removed when the test ends. */
export function tempFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-file-'));
  onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Closed when the test ends. Its saves are not synced, which no test can tell apart; those about syncs say so. */
export function openStore(folder: string = tempFolder(), options: FileStoreOptions = {}): FullAgentStore {
  const store = fileStore(folder, { durability: 'process', ...options });
  onTestFinished(() => store.close());
  return store;
}

/** A store whose file system the test decides. */
export function openOn(
  fileSystem: Partial<FileSystem>,
  {
    folder = tempFolder(),
    durability = 'power',
    networkKindOf = () => undefined,
    ports,
    thread,
    ...options
  }: StoreOptions & {
    readonly folder?: string;
    readonly durability?: 'power' | 'process';
    readonly networkKindOf?: (folder: string) => string | undefined;
    readonly ports?: Partial<Ports>;
    /** None: each call of the file system can wait. */
    readonly thread?: ThreadCalls;
  } = {},
): StoreParts & { readonly folder: string; readonly warnings: readonly string[] } {
  const warnings: string[] = [];
  const parts = storeParts({
    ...resolveStoreOptions(options),
    ...{ folder, durability, networkKindOf, thread },
    ports: resolvePorts(ports),
    fs: { ...nodeFileSystem, ...fileSystem },
    warn: (message) => warnings.push(message),
  });
  onTestFinished(() => parts.close());
  return { ...parts, folder, warnings };
}

/** Every file below the folder, with its path from there, sorted. */
export function filesIn(folder: string): string[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort();
}
