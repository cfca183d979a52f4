import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';

// Neighbour packages resolve to their sources: no test of a package needs a build.
// Packages of others are loaded by Node itself, which does not know `module`: files for bundlers may not run in it.
const conditions = ['@lousho/source', ...defaultServerConditions.filter((name) => name !== 'module')];

/** What every package's vitest.config.ts starts from. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    environment: 'node',
    include: ['test/**/*.test.ts'],
    // tools/test.mjs adds these reports up.
    reporters: ['default', 'json'],
    // Time is moved by hand: this much real time passes only where something hangs, or on a machine that is very busy.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    outputFile: { json: 'coverage/vitest-report.json' },
  },
});
