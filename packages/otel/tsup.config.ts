import { defineConfig } from 'tsup';
import { shared } from '../../tsup.shared.ts';

export default defineConfig(shared);
