import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, it } from 'vitest';

interface Answer {
  readonly text: string;
  readonly spans: readonly {
    readonly name: string;
    readonly id: string;
    readonly parentId?: string;
    readonly links: readonly string[];
  }[];
}

let worker: Miniflare;
beforeAll(async () => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('support/worker.ts', import.meta.url))],
    ...{ bundle: true, write: false, format: 'esm', target: 'es2022', logLevel: 'silent' },
    conditions: ['@lousho/source', 'workerd', 'worker', 'browser'],
    // A module of Node would stay as an import, and workerd would refuse it: there is no compatibility flag.
    ...{ platform: 'browser', external: ['node:*'] },
  });
  worker = new Miniflare({
    ...{ modules: true, script: outputFiles[0]?.text ?? '', compatibilityDate: '2026-04-01' },
    // Else it asks the network where it is.
    cf: false,
  });
});
afterAll(() => worker.dispose());

it('a Worker without Node traces a run over a pause, with a sub-agent, by the real SDK', async () => {
  const response = await worker.dispatchFetch('http://worker.example/');
  const { text, spans } = (await response.json()) as Answer;
  expect(text).toBe('Paid.');
  const under = (parentId: string | undefined): unknown =>
    spans
      .filter((span) => span.parentId === parentId)
      .map(({ name, id }) => {
        const below = under(id) as unknown[];
        return below.length === 0 ? name : [name, below];
      });
  expect(under(undefined)).toEqual([
    [
      'invoke_agent clerk',
      ['chat mock', ['execute_tool task', [['invoke_agent counter', ['chat mock']]]], 'chat mock'],
    ],
    ['invoke_agent clerk', ['execute_tool pay', 'chat mock']],
  ]);
  const [before, after] = spans.filter(({ name }) => name === 'invoke_agent clerk');
  expect(after?.links).toEqual([before?.id]);
});
