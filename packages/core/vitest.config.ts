import { fileURLToPath } from 'node:url';
import { defineProject, mergeConfig } from 'vitest/config';
import shared from '../../vitest.shared.ts';

/** The names under which the seed snippets import us; test/seed-snippets/tsconfig.json says the same to the compiler. */
const alias = {
  '@lousho/build-ai-agent': 'test/support/build-ai-agent.ts',
  '@lousho/build-ai-agent/executor': '../executor/src/index.ts',
  '@lousho/build-ai-agent/sqlite': '../store-sqlite/src/index.ts',
  '@lousho/build-ai-agent/testing': '../testing/src/index.ts',
  '@lousho/build-ai-agent/utils': '../store-memory/src/index.ts',
};

export default mergeConfig(
  shared,
  defineProject({
    resolve: {
      alias: Object.entries(alias).map(([name, file]) => ({
        find: new RegExp(`^${name}$`),
        replacement: fileURLToPath(new URL(file, import.meta.url)),
      })),
    },
    test: { name: 'core' },
  }),
);
