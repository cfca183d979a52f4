/** What npm would publish of the packages, and projects outside of the repository that install it. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../../../..');

export class Tarballs {
  /** Holds the tarballs and the projects. */
  readonly folder: string;

  constructor(prefix: string) {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), prefix));
  }

  pack(packages: readonly string[]): void {
    const workspaces = packages.flatMap((name) => ['--workspace', `@lousho/${name}`]);
    npm(root, ['pack', '--ignore-scripts', '--pack-destination', this.folder, ...workspaces]);
  }

  /** A project with these packages. `others` in the versions of this repository: they are on this machine already. */
  install(name: string, packages: readonly string[], others: readonly string[]): string {
    const project = path.join(this.folder, name);
    fs.mkdirSync(project);
    // Newer versions of npm run the install script of a dependency only when it is allowed here.
    const allowScripts = { 'better-sqlite3': true, esbuild: true };
    fs.writeFileSync(
      path.join(project, 'package.json'),
      JSON.stringify({ name, private: true, allowScripts }),
    );
    const versions = others.map((other) => `${other}@${manifestOf(other).version}`);
    const tarballs = packages.map((wanted) => this.tarballOf(wanted));
    npm(project, ['install', ...quietly, '--prefer-offline', ...tarballs, ...versions]);
    return project;
  }

  /** Its path. */
  tarballOf(name: string): string {
    const tarball = fs
      .readdirSync(this.folder)
      .find((file) => file.startsWith(`lousho-${name}-`) && file.endsWith('.tgz'));
    if (tarball === undefined) throw new Error(`npm packed no ${name}`);
    return path.join(this.folder, tarball);
  }

  remove(): void {
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

const quietly = ['--no-audit', '--no-fund'];

/** `false` when it is not on this machine: nothing is downloaded for it. */
export function installIfCached(project: string, wanted: string): boolean {
  return runNpm(project, ['install', ...quietly, '--offline', wanted]).status === 0;
}

function npm(cwd: string, args: readonly string[]): void {
  const { status, stdout, stderr } = runNpm(cwd, args);
  if (status !== 0) throw new Error(`npm ${args[0]}: ${stdout}${stderr}`);
}

function runNpm(cwd: string, args: readonly string[]) {
  return spawnSync('npm', args, {
    cwd,
    encoding: 'utf8',
    env: ownEnv(),
    shell: process.platform === 'win32',
  });
}

/** better-sqlite3 takes the binary that is compiled here already instead of compiling for a minute; see tools/bootstrap.mjs. */
export function offerPrebuild(folder: string): void {
  const { version, file } = manifestOf('better-sqlite3');
  const header = (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header;
  const isMusl = process.platform === 'linux' && header.glibcVersionRuntime === undefined;
  const platform = `${process.platform}${isMusl ? 'musl' : ''}-${process.arch}`;
  const archive = path.join(
    folder,
    `better-sqlite3-v${version}-node-v${process.versions.modules}-${platform}.tar.gz`,
  );
  const binary = 'build/Release/better_sqlite3.node';
  const { status } = spawnSync('tar', ['-czf', archive, '-C', path.dirname(file), binary]);
  if (status !== 0) throw new Error('The binary of better-sqlite3 could not be packed.');
  fs.writeFileSync(path.join(folder, '.prebuild-installrc'), JSON.stringify({ 'local-prebuilds': folder }));
}

/** Neither what `npm test` told npm nor what Vitest told Node. */
export function ownEnv(): NodeJS.ProcessEnv {
  const inherited = /^(?:npm_config_(?:workspaces?|include_workspace_root|loglevel)|NODE_OPTIONS)$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !inherited.test(name)));
}

/** By its place: not every package lets others ask for its manifest. */
export function manifestOf(name: string): { readonly version: string; readonly file: string } {
  const file = path.join(root, 'node_modules', name, 'package.json');
  const { version } = JSON.parse(fs.readFileSync(file, 'utf8')) as { version: string };
  return { version, file };
}
