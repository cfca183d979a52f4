/** The code in the README is the code of test/examples, which compiles and works. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { frozenCopy, isSDKError, validateArgs } from '../src/index.ts';
import { refund } from './examples/refund.ts';
import { tinyStore } from './examples/tiny-store.ts';
import { aCheckpoint, stored } from './support/checkpoints.ts';

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');

describe('the README', () => {
  it('shows the examples and no other code', () => {
    const blocks = [...read('../README.md').matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code);
    expect(blocks).toEqual([read('./examples/refund.ts'), read('./examples/tiny-store.ts')]);
  });

  it('links to pages that exist', () => {
    const links = [...read('../README.md').matchAll(/\]\((\.[^)#]+)/g)].map(([, path]) => path ?? '');
    expect(links).toHaveLength(3);
    for (const path of links.filter((link) => link.endsWith('.md'))) expect(read(`../${path}`)).not.toBe('');
  });
});

describe('the smallest store', () => {
  it('keeps what three methods promise', async () => {
    const { checkpoints } = tinyStore();
    if (checkpoints === undefined) throw new Error('no checkpoints part');
    const given = stored(aCheckpoint({ businessState: { cart: ['a'] } }));
    await checkpoints.save('order-7', given);
    const before = frozenCopy(given);
    (given.businessState as { cart: string[] }).cart.push('b');
    expect(await checkpoints.load('order-7')).toEqual(before);
    expect(await checkpoints.load('order-8')).toBeNull();
    await checkpoints.delete('order-7');
    await checkpoints.delete('order-7');
    expect(await checkpoints.load('order-7')).toBeNull();
    for (const call of [checkpoints.load('../x'), checkpoints.delete('.'), checkpoints.save('', before)])
      expect(isSDKError(await call.catch((error: unknown) => error), 'LOUSHO_SESSION_ID_INVALID')).toBe(true);
  });
});

describe('the example of a tool', () => {
  it('takes what its schema says', async () => {
    expect(await validateArgs(refund.input, { orderId: '7', cents: 5 })).toMatchObject({ ok: true });
    expect(await validateArgs(refund.input, { orderId: '7', cents: -5 })).toMatchObject({ ok: false });
  });
});
