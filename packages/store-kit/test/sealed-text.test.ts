/** One sealed value: it opens as what it is, where it belongs, with its key, and in no other way. */
import { describe, expect, it } from 'vitest';
import { platformCrypto } from '../src/crypto-ports.ts';
import { Seals, keyIdOf, tagOf, type SealKind } from '../src/sealed-text.ts';
import { resolveKeys, type SealingKey } from '../src/sealing-keys.ts';
import { testKey } from './support/keys.ts';

const [a, b] = [testKey('a'), testKey('b')];
const of = { id: 'order-7', record: 'checkpoint' } as const;
const value = { text: 'secret', more: [1, null, { __proto__: null, deep: true }] };
const everyKind: readonly SealKind[] = [
  'message',
  'checkpoint/inputs',
  'checkpoint/state',
  'checkpoint/header',
  'checkpoint/facts',
  'checkpoint/held',
  'checkpoint/result',
  'session/inputs',
  'session/state',
  'session/header',
  'approval',
];

function sealsOf(...keys: SealingKey[]): Seals {
  return new Seals(resolveKeys(keys, platformCrypto), platformCrypto);
}

describe('a sealed value', () => {
  it('opens as what it was, and as no other kind and nowhere else', async () => {
    const seals = sealsOf(a, b);
    for (const kind of everyKind) {
      const { text, tag } = await seals.seal(kind, 'order-7', value);
      expect(await seals.open(text, kind, 'order-7', of)).toEqual(value);
      expect([tagOf(text), keyIdOf(text)]).toEqual([tag, 'a']);
      for (const other of everyKind)
        if (other !== kind)
          await expect(seals.open(text, other, 'order-7', of)).rejects.toMatchObject({
            code: 'LOUSHO_CHECKPOINT_CORRUPT',
            details: of,
          });
      for (const place of ['order-8', '', 'order-7\n'])
        await expect(seals.open(text, kind, place, of)).rejects.toMatchObject({
          code: 'LOUSHO_CHECKPOINT_CORRUPT',
        });
    }
  });

  it('opens with its own key alone, whatever id is written on it', async () => {
    const seals = sealsOf(a, b);
    const { text } = await seals.seal('approval', 'order-7', value);
    expect(await sealsOf(b, a).open(text, 'approval', 'order-7', of)).toEqual(value);
    const renamed = text.replace('.a.', '.b.');
    await expect(seals.open(renamed, 'approval', 'order-7', of)).rejects.toMatchObject({
      code: 'LOUSHO_CHECKPOINT_CORRUPT',
    });
    await expect(sealsOf(b).open(text, 'approval', 'order-7', of)).rejects.toMatchObject({
      code: 'LOUSHO_STORE_KEY_UNKNOWN',
      details: { ...of, keyId: 'a' },
    });
  });

  it('is another text each time, with a nonce of 96 random bits', async () => {
    const nonces: number[] = [];
    const seals = new Seals(resolveKeys([a], platformCrypto), {
      ...platformCrypto,
      randomBytes(count) {
        nonces.push(count);
        return platformCrypto.randomBytes(count);
      },
    });
    const texts = new Set<string>();
    for (let time = 0; time < 100; time += 1)
      texts.add((await seals.seal('approval', 'order-7', value)).text.slice(0, 16 + 2 + 16));
    expect(texts.size).toBe(100);
    expect(nonces).toEqual(Array.from({ length: 100 }, () => 12));
  });
});
