/** What `lousho.config.ts` imports. The command line itself is the bin `lousho`. */
export { defineConfig, type LoushoConfig } from './config.ts';
