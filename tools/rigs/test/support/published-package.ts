/** A package as npm would publish it, read from its tarball. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

export interface PublishedPackage {
  readonly manifest: {
    readonly name: string;
    readonly description?: string;
    readonly keywords?: readonly string[];
    readonly license?: string;
    readonly type?: string;
    readonly sideEffects?: unknown;
    readonly engines?: { readonly node?: string };
    readonly repository?: { readonly type: string; readonly url: string; readonly directory?: string };
    readonly exports: { readonly [entryPoint: string]: unknown };
    readonly bin?: { readonly [command: string]: string };
  };
  /** Relative to the package. */
  readonly files: ReadonlySet<string>;
  readonly readme: string;
}

export function readPackage(tarball: string): PublishedPackage {
  const folder = fs.mkdtempSync(`${tarball}-`);
  const { status } = spawnSync('tar', ['-xzf', tarball, '-C', folder]);
  if (status !== 0) throw new Error(`${tarball} could not be unpacked.`);
  const root = path.join(folder, 'package');
  const files = fs
    .readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)));
  const textOf = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8');
  return {
    manifest: JSON.parse(textOf('package.json')) as PublishedPackage['manifest'],
    files: new Set(files),
    readme: textOf('README.md'),
  };
}

/** What its README links to inside of the package. */
export function ownPagesLinked({ readme }: PublishedPackage): readonly string[] {
  return [...readme.matchAll(/\]\((?!\.\.\/|[a-z]+:|#)(?:\.\/)?([^)#\s]+)/g)].map(([, file = '']) => file);
}

/** The files that its manifest names: entry points, their types, commands. Sources are for this repository alone. */
export function filesNamed({ manifest }: PublishedPackage): readonly string[] {
  const named: string[] = [];
  const collect = (value: unknown): void => {
    if (typeof value === 'string') named.push(value.replace(/^\.\//, ''));
    else if (typeof value === 'object' && value !== null)
      for (const [condition, target] of Object.entries(value))
        if (condition !== '@lousho/source') collect(target);
  };
  collect(manifest.exports);
  collect(manifest.bin);
  return named;
}
