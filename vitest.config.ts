import { defineConfig } from 'vitest/config';

/** For `npx vitest` in the root folder; `npm test` runs each package with its own config. */
export default defineConfig({
  test: {
    projects: ['packages/*', 'tools/rigs'],
    coverage: { provider: 'v8', include: ['packages/*/src/**/*.ts'], reporter: ['text', 'json-summary'] },
  },
});
