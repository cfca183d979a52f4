/** A schema of another library: the Standard Schema interface and its JSON Schema part, nothing else. */
import type { StandardSchema } from '@lousho/contract';

export function arktypeLike<Output>(): StandardSchema<unknown, Output> & {
  readonly '~standard': {
    readonly jsonSchema: { readonly input: () => object };
    readonly types: { readonly input: unknown; readonly output: Output };
  };
} {
  return {
    '~standard': {
      version: 1,
      vendor: 'other',
      validate: (value) => ({ value: value as Output }),
      types: { input: undefined, output: undefined as Output },
      jsonSchema: { input: () => ({ type: 'object' }) },
    },
  };
}
