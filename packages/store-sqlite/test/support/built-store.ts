/** The package as plain JavaScript, for child processes: they run without a compiler, as in production. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'tsup';

const packageFolder = fileURLToPath(new URL('../../', import.meta.url));

export interface BuiltStore {
  /**
   * Starts a process that runs this module. In it: `open(options)` gives a store on `file`, `say(value)` a message to us, `fixtures` the
   * makers of checkpoints, `heard()` resolves with our next message, and `storeUrl` is the built module.
   */
  run(file: string, script: string): StoreProcess;
  remove(): void;
}

export interface StoreProcess {
  readonly child: ChildProcess;
  /** What it said so far. */
  readonly said: unknown[];
  /** Resolves when it has said that many things. */
  hasSaid(count: number): Promise<void>;
  /** Resolves with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
}

/** Inside the package, so that better-sqlite3 is found as it is by the sources. */
export async function buildStore(): Promise<BuiltStore> {
  const reports = path.join(packageFolder, 'coverage');
  fs.mkdirSync(reports, { recursive: true });
  const folder = fs.mkdtempSync(path.join(reports, 'built-'));
  await build({
    entry: {
      store: path.join(packageFolder, 'src/index.ts'),
      fixtures: path.join(packageFolder, 'test/support/fixtures.ts'),
    },
    outDir: folder,
    format: 'esm',
    target: 'node20',
    platform: 'node',
    splitting: true,
    noExternal: [/^@lousho\//],
    external: ['better-sqlite3'],
    esbuildOptions(options) {
      options.conditions = ['@lousho/source'];
    },
    config: false,
    silent: true,
    dts: false,
  });
  const urlOf = (name: string): string => {
    const built = fs.readdirSync(folder).find((file) => file === `${name}.mjs` || file === `${name}.js`);
    return pathToFileURL(path.join(folder, built ?? name)).href;
  };
  const prelude = `
    import { SqliteStore } from ${JSON.stringify(urlOf('store'))};
    import * as fixtures from ${JSON.stringify(urlOf('fixtures'))};
    const storeUrl = ${JSON.stringify(urlOf('store'))};
    const file = process.argv[1];
    const open = (options) => new SqliteStore(file, options);
    const say = (value) => new Promise((resolve) => process.send(value, resolve));
    const heard = () => new Promise((resolve) => process.once('message', resolve));
  `;
  return {
    run: (file, script) => startProcess(file, `${prelude}\n${script}\nprocess.disconnect();`),
    remove: () => fs.rmSync(folder, { recursive: true, force: true }),
  };
}

function startProcess(file: string, script: string): StoreProcess {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script, file], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const said: unknown[] = [];
  const whenSaid: (() => void)[] = [];
  child.on('message', (value) => {
    said.push(value);
    for (const resolve of whenSaid.splice(0)) resolve();
  });
  const ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string);
  const over = ended.then(() => {
    for (const resolve of whenSaid.splice(0)) resolve();
  });
  return {
    child,
    said,
    ended,
    async hasSaid(count) {
      while (said.length < count) {
        if (child.exitCode !== null || child.signalCode !== null) {
          await over;
          throw new Error(`the process ended after ${said.length} of ${count} messages`);
        }
        await new Promise<void>((resolve) => whenSaid.push(resolve));
      }
    },
  };
}
