/** The end of a `switch` that knows every member of its union. */
import { describe, expect, it } from 'vitest';
import { assertNever } from '../src/index.ts';

describe('assertNever', () => {
  it('is a type error for a member that is left, and at run time names the value that came', () => {
    const left = { kind: 'new' } as { readonly kind: 'new' };
    // @ts-expect-error: the member was not handled.
    expect(() => assertNever(left)).toThrow('Invariant: unexpected {"kind":"new"}');
  });
});
