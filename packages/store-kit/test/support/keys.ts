/** Keys for tests. */
import type { SealingKey } from '../../src/index.ts';

/** Another key for each id. */
export function testKey(id: string): SealingKey {
  const key = new Uint8Array(32);
  for (const [index, byte] of new TextEncoder().encode(id).entries())
    key[index % 32] = (key[index % 32] ?? 0) ^ byte;
  return { id, key };
}
