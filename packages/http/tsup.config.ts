import { defineConfig } from 'tsup';
import { shared } from '../../tsup.shared.ts';

export default defineConfig({ ...shared, entry: ['src/index.ts', 'src/node.ts'] });
