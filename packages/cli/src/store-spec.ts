/** What `--store` takes: `sqlite:./jobs.db`, `file:./dir`, or a module that exports a store. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CliError } from './cli-error.ts';

/** Where a store is; `path` is absolute. */
export type StorePlace =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'module'; readonly path: string };

const forms = 'sqlite:./jobs.db, file:./folder, or the path of a module that exports a store';

/** @throws CliError LOUSHO_CLI_USAGE */
export function parseStoreSpec(spec: string, cwd: string): StorePlace {
  // One letter before the colon is a drive of Windows.
  const match = /^([a-z][a-z0-9+.-]+):(.*)$/is.exec(spec);
  if (match === null) return modulePlace(spec, cwd);
  const [, scheme = '', rest = ''] = match;
  const kind = scheme.toLowerCase();
  if (kind !== 'sqlite' && kind !== 'file')
    throw new CliError('LOUSHO_CLI_USAGE', `Nobody knows stores "${scheme}:".`, { hint: `Give ${forms}.` });
  if (rest === '' || rest === ':memory:')
    throw new CliError('LOUSHO_CLI_USAGE', `"${spec}" names no place on the disk.`, {
      hint: `Give ${forms}.`,
    });
  return { kind, path: rest.startsWith('//') ? pathOfUrl(rest) : path.resolve(cwd, rest) };
}

/** How it is written in messages and in commands to copy. */
export function storeSpecOf(place: StorePlace, cwd: string): string {
  const relative = path.relative(cwd, place.path);
  const shown = relative.startsWith('..') || path.isAbsolute(relative) ? place.path : `./${relative}`;
  return place.kind === 'module' ? shown : `${place.kind}:${shown}`;
}

function modulePlace(spec: string, cwd: string): StorePlace {
  if (/\.[mc]?[jt]s$/.test(spec)) return { kind: 'module', path: path.resolve(cwd, spec) };
  const guess = /\.(db|sqlite3?)$/.test(spec) ? `sqlite:${spec}` : `file:${spec}`;
  throw new CliError('LOUSHO_CLI_USAGE', `"${spec}" does not say which kind of store it is.`, {
    hint: `Do you mean ${guess}? Give ${forms}.`,
  });
}

function pathOfUrl(rest: string): string {
  try {
    return fileURLToPath(`file:${rest}`);
  } catch (error) {
    throw new CliError('LOUSHO_CLI_USAGE', `"${rest}" is no path of this machine.`, { cause: error });
  }
}
