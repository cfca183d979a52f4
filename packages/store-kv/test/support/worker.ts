/** A Worker in real workerd: bundled as its author would bundle it, with a namespace of its own. */
import { build } from 'esbuild';
import { Log, LogLevel, Miniflare, type Request, type Response } from 'miniflare';

export interface WorkerOptions {
  /** The module whose default export has `fetch`. */
  readonly entry: string;
  /** How packages are resolved besides. */
  readonly conditions: readonly string[];
  /** Name of the namespace binding. */
  readonly binding: string;
  /** A folder for the namespace, so that another runtime can go on with it. Default: gone with the runtime. */
  readonly persistIn?: string;
  readonly bindings?: { readonly [name: string]: string };
  /** Other Workers, answered by the test. */
  readonly services?: { readonly [name: string]: (request: Request) => Promise<Response> };
}

export async function startWorker(options: WorkerOptions): Promise<Miniflare> {
  const { entry, conditions, binding, persistIn, bindings = {}, services = {} } = options;
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
    ...(persistIn === undefined ? {} : { kvPersist: persistIn }),
    bindings: { ...bindings },
    serviceBindings: { ...services },
    // Else it asks the network where it is.
    cf: false,
    log: new Log(LogLevel.WARN),
  });
}
