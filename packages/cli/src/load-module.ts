/** Loads what the user has: modules of theirs, also in TypeScript, and packages that are installed beside them. */
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { CliError } from './cli-error.ts';

export type LoadedModule = { readonly [name: string]: unknown };

/**
 * TypeScript goes through jiti on every release of Node: Node 20 cannot load it, and the later ones want other import paths and less syntax.
 * Packages that it imports are loaded by Node, so there is one copy of each.
 * @throws CliError LOUSHO_CLI_CONFIG_INVALID
 */
export async function loadModule(file: string): Promise<LoadedModule> {
  try {
    if (/\.[mc]?ts$/.test(file)) {
      const { createJiti } = await import('jiti');
      return await createJiti(pathToFileURL(file).href, { moduleCache: false }).import<LoadedModule>(file);
    }
    return (await import(pathToFileURL(file).href)) as LoadedModule;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError('LOUSHO_CLI_CONFIG_INVALID', `"${file}" could not be loaded: ${reason}`, {
      cause: error,
    });
  }
}

/** Of a package that the CLI does not bring: that of the folder, else the one beside the CLI. @throws CliError LOUSHO_CLI_PACKAGE_MISSING */
export async function loadPackage(name: string, cwd: string): Promise<LoadedModule> {
  const file = resolvePackage(name, cwd);
  if (file === undefined)
    throw new CliError('LOUSHO_CLI_PACKAGE_MISSING', `The package ${name} is not installed.`, {
      hint: `Install it: npm install ${name}`,
    });
  return (await import(pathToFileURL(file).href)) as LoadedModule;
}

/** Where it is, or `undefined` when it is not installed. */
export function resolvePackage(name: string, cwd: string): string | undefined {
  for (const from of [path.join(cwd, 'any.js'), import.meta.url]) {
    try {
      return createRequire(from).resolve(name);
    } catch (error) {
      const code = (error as { readonly code?: unknown }).code;
      if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error;
    }
  }
  return undefined;
}
