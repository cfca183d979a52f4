import { defineProject, mergeConfig } from 'vitest/config';
import shared from '../../vitest.shared.ts';

// These tests start processes: on a busy machine one test may take seconds.
export default mergeConfig(
  shared,
  defineProject({ test: { name: 'rigs', testTimeout: 60_000, hookTimeout: 60_000 } }),
);
