// A Worker in real workerd, bundled as its author would bundle it. There is no compatibility flag: a module of Node is refused.
import { build } from 'esbuild';
import { Log, LogLevel, Miniflare } from 'miniflare';

/** @returns what the Worker of this file answers */
export async function answerOfWorker(file) {
  const { outputFiles } = await build({
    entryPoints: [file],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['node:*'],
    logLevel: 'silent',
  });
  const worker = new Miniflare({
    modules: true,
    script: outputFiles[0].text,
    compatibilityDate: '2026-04-01',
    // Else it asks the network where it is.
    cf: false,
    log: new Log(LogLevel.NONE),
  });
  try {
    const response = await worker.dispatchFetch('http://worker/');
    return await response.text();
  } finally {
    await worker.dispose();
  }
}
