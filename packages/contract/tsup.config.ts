import { defineConfig } from 'tsup';
import { shared } from '../../tsup.shared.ts';

export default defineConfig({
  ...shared,
  entry: ['src/index.ts', 'src/node.ts'],
  dts: {
    compilerOptions: { ignoreDeprecations: '6.0' },
    // Stores can be disposed of; an application whose `lib` is older than that still type checks.
    banner: '/// <reference lib="esnext.disposable" />',
  },
});
