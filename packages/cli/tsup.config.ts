import { defineConfig } from 'tsup';
import { shared } from '../../tsup.shared.ts';

export default defineConfig({
  ...shared,
  entry: ['src/index.ts', 'src/bin.ts'],
  // What `lousho` itself runs has no types to publish.
  dts: { ...(shared.dts as object), entry: ['src/index.ts'] },
});
