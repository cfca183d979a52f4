/** Opens the store of a spec. One that is not there is an error, unless a command is about to fill it: looking creates nothing. */
import fs from 'node:fs';
import path from 'node:path';
import type { AgentStore } from '@lousho/contract';
import { CliError } from './cli-error.ts';
import { isObject } from './load-config.ts';
import { loadModule, loadPackage, type LoadedModule } from './load-module.ts';
import { parseStoreSpec, storeSpecOf, type StorePlace } from './store-spec.ts';

export interface OpenStoreOptions {
  readonly cwd: string;
  /** Whether a store that is not there may be created. */
  readonly create: boolean;
}
export interface OpenedStore {
  readonly store: AgentStore;
  /** `undefined` for a store that the configuration made itself. */
  readonly place: StorePlace | undefined;
}

/** @throws CliError LOUSHO_CLI_USAGE, LOUSHO_CLI_STORE_NOT_FOUND, LOUSHO_CLI_PACKAGE_MISSING, LOUSHO_CLI_CONFIG_INVALID; what the store throws */
export async function openStore(spec: string, { cwd, create }: OpenStoreOptions): Promise<OpenedStore> {
  const place = parseStoreSpec(spec, cwd);
  if (place.kind === 'module' || !create) requireThere(place, cwd);
  return { store: await openPlace(place, cwd), place };
}

/** @throws CliError LOUSHO_CLI_CONFIG_INVALID */
export function requireStore(value: unknown, where: string): AgentStore {
  const store = value as AgentStore;
  const isStore =
    isObject(value) &&
    (store.checkpoints !== undefined || store.approvals !== undefined || store.sessions !== undefined);
  if (isStore) return store;
  throw new CliError('LOUSHO_CLI_CONFIG_INVALID', `${where} is no store.`, {
    hint: 'A store has checkpoints, approvals or sessions; a checkpoint store alone goes in as { checkpoints: store }.',
  });
}

async function openPlace(place: StorePlace, cwd: string): Promise<AgentStore> {
  switch (place.kind) {
    case 'sqlite': {
      const { SqliteStore } = await loadPackage('@lousho/store-sqlite', cwd);
      const Store = SqliteStore as new (path: string) => AgentStore;
      return new Store(place.path);
    }
    case 'file': {
      const { fileStore } = await loadPackage('@lousho/store-file', cwd);
      return (fileStore as (dir: string) => AgentStore)(place.path);
    }
    case 'module':
      return storeOfModule(await loadModule(place.path), place.path);
  }
}

async function storeOfModule(module: LoadedModule, file: string): Promise<AgentStore> {
  const exported: unknown = await (module.store ?? module.default);
  return requireStore(exported, `What "${file}" exports as "store" or as its default`);
}

function requireThere(place: StorePlace, cwd: string): void {
  if (isThere(place)) return;
  const shown = storeSpecOf(place, cwd);
  throw new CliError('LOUSHO_CLI_STORE_NOT_FOUND', `There is no store at ${shown}.`, {
    hint: 'Nothing was created. Check the path, or -C when it is relative to another folder.',
  });
}

function isThere({ kind, path: place }: StorePlace): boolean {
  const stats = fs.statSync(place, { throwIfNoEntry: false });
  if (stats === undefined) return false;
  // An empty file would become a database, and an empty folder a store: there is none yet.
  if (kind === 'sqlite') return !stats.isFile() || stats.size > 0;
  if (kind === 'file') return !stats.isDirectory() || fs.existsSync(path.join(place, 'format.json'));
  return true;
}
