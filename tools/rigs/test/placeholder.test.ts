import { expect, it } from 'vitest';

it('runs the rigs', () => {
  expect(import.meta.url).toContain('rigs');
});
