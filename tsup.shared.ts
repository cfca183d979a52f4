import type { Options } from 'tsup';

/** What every package's tsup.config.ts starts from. */
export const shared: Options = {
  entry: ['src/index.ts'],
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  // tsup would write `fs` for `node:fs`: Workers and Deno accept only the latter.
  removeNodeProtocol: false,
  // tsup 8.5.1 sets the deprecated `baseUrl` itself; TypeScript 6 refuses it without this.
  dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
  sourcemap: true,
  clean: true,
  // What two entry points share must exist once: a class that is bundled twice fails `instanceof`.
  splitting: true,
};
