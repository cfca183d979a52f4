/** A Worker in real workerd: bundled as its author would bundle it, with a namespace of its own. */
import { build } from 'esbuild';
import { Log, LogLevel, Miniflare } from 'miniflare';

export interface WorkerOptions {
  /** The module whose default export has `fetch`. */
  readonly entry: string;
  /** How packages are resolved besides. */
  readonly conditions: readonly string[];
  /** Name of the namespace binding. */
  readonly binding: string;
}

export async function startWorker({ entry, conditions, binding }: WorkerOptions): Promise<Miniflare> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    conditions: [...conditions, 'workerd', 'worker', 'browser'],
    // A module of Node would stay as an import, and workerd would refuse it: there is no compatibility flag.
    platform: 'browser',
    external: ['node:*'],
    logLevel: 'silent',
  });
  return new Miniflare({
    modules: true,
    script: outputFiles[0]?.text ?? '',
    compatibilityDate: '2026-04-01',
    kvNamespaces: [binding],
    // Else it asks the network where it is.
    cf: false,
    log: new Log(LogLevel.WARN),
  });
}
