/** The one folder that everything happens in: where it really is, and which folders inside of it are closed to the tools. */
import { lstatSync, realpathSync } from 'node:fs';
import nodePath from 'node:path';
import { ConfigurationError, resolvePorts, type Ports } from '@lousho/contract';
import { hasDescriptorPaths, nodeFiles, type FileCalls } from './file-calls.ts';
import type { PathRules } from './workspace-path.ts';

export interface Workspace {
  /** Without links. */
  readonly root: string;
  readonly paths: PathRules;
  /** By identity: on a disk that folds case a name says nothing. */
  readonly closedFolders: readonly FolderIdentity[];
  readonly files: FileCalls;
  readonly ports: Pick<Ports, 'clock' | 'ids'>;
  readonly byDescriptor: boolean;
}
export interface FolderIdentity {
  readonly dev: number;
  readonly ino: number;
}
/** For tests of this package. */
export interface WorkspaceInternals {
  readonly files?: FileCalls | undefined;
  readonly ports?: Pick<Ports, 'clock' | 'ids'> | undefined;
  readonly byDescriptor?: boolean | undefined;
}

/** @throws ConfigurationError LOUSHO_CONFIG_INVALID when `root` is no folder. */
export function openWorkspace(
  root: string,
  closed: readonly string[] = [],
  { files = nodeFiles, ports = resolvePorts(), byDescriptor = hasDescriptorPaths }: WorkspaceInternals = {},
): Workspace {
  const realRoot = realFolder(root, 'root');
  return {
    root: realRoot,
    paths: { roots: [realRoot, nodePath.resolve(root)], isWindows: process.platform === 'win32' },
    closedFolders: closed.map((folder) => identityOf(lstatSync(folder))),
    files,
    ports,
    byDescriptor,
  };
}

export function realFolder(path: string, option: string): string {
  try {
    const real = realpathSync.native(path);
    if (lstatSync(real).isDirectory()) return real;
  } catch (error) {
    const details = { option, got: path, want: 'a folder that exists' };
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', details, { cause: error });
  }
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got: path, want: 'a folder' });
}

export function identityOf({ dev, ino }: FolderIdentity): FolderIdentity {
  return { dev, ino };
}

export function isSameFile(one: FolderIdentity, other: FolderIdentity): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}
