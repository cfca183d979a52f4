import { defineConfig } from 'tsup';
import { shared } from '../../tsup.shared.ts';

export default defineConfig({
  ...shared,
  entry: ['src/index.ts', 'src/crash.ts', 'src/simulation.ts', 'src/conformance.ts', 'src/node.ts'],
});
