/** A path as a model wrote it → the names below the root, or a refusal. Reads no disk. */
import nodePath from 'node:path';
import { WorkspaceError } from './workspace-error.ts';

/** Names that lead to no file, whatever folder they stand in. */
const WINDOWS_DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\..*)?$/i;

export interface PathRules {
  /** The root as it was given and as it really is: an absolute path below either is one below the root. */
  readonly roots: readonly string[];
  readonly isWindows: boolean;
}

/**
 * `[]` is the root itself. `..` is resolved by name: links are not followed, so it means the same as on the disk.
 *
 * @throws WorkspaceError OUTSIDE_WORKSPACE, INVALID_PATH
 */
export function namesBelowRoot(path: string, rules: PathRules): readonly string[] {
  const syntax = rules.isWindows ? nodePath.win32 : nodePath.posix;
  if (path.includes('\0')) invalid(path, 'holds a zero byte');
  // `C:x` is relative to the folder of another drive: not absolute, and not below the root.
  const isRooted = syntax.isAbsolute(path) || (rules.isWindows && /^[A-Za-z]:/.test(path));
  const relative = isRooted ? relativeToRoot(path, rules, syntax) : path;
  const names: string[] = [];
  for (const name of relative.split(rules.isWindows ? /[\\/]/ : '/')) {
    if (name === '' || name === '.') continue;
    if (name !== '..') names.push(name);
    else if (names.pop() === undefined) outside(path);
  }
  if (rules.isWindows) for (const name of names) refuseWindowsName(path, name);
  return names;
}

/** How a path below the root is shown, in results and in records: with `/` on every platform. */
export function shownPath(names: readonly string[]): string {
  return names.length === 0 ? '.' : names.join('/');
}

function relativeToRoot(path: string, { roots }: PathRules, syntax: typeof nodePath.posix): string {
  for (const root of roots) {
    const relative = syntax.relative(root, path);
    const leaves = relative === '..' || relative.startsWith(`..${syntax.sep}`) || syntax.isAbsolute(relative);
    if (!leaves) return relative;
  }
  return outside(path);
}

/** A colon opens a stream of a file; a dot or a space at the end is dropped, so that two paths are one file. */
function refuseWindowsName(path: string, name: string): void {
  if (/[<>:"|?*\u0001-\u001f]/.test(name) || /[. ]$/.test(name) || WINDOWS_DEVICE.test(name))
    invalid(path, `holds the name ${JSON.stringify(name)}, which is no file name on Windows`);
}

function outside(path: string): never {
  throw new WorkspaceError(
    'OUTSIDE_WORKSPACE',
    path,
    `${JSON.stringify(path)} is outside of the workspace. Give a path relative to its root folder, such as "src/index.ts".`,
  );
}

function invalid(path: string, why: string): never {
  throw new WorkspaceError('INVALID_PATH', path, `${JSON.stringify(path)} ${why}. Choose another name.`);
}
