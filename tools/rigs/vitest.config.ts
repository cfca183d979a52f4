import { defineProject, mergeConfig } from 'vitest/config';
import shared from '../../vitest.shared.ts';

// These tests start processes, which need the processors for themselves: one file at a time. On a busy machine one test may take minutes.
export default mergeConfig(
  shared,
  defineProject({
    test: { name: 'rigs', fileParallelism: false, testTimeout: 300_000, hookTimeout: 60_000 },
  }),
);
