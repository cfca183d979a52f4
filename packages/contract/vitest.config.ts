import { defineProject, mergeConfig } from 'vitest/config';
import shared from '../../vitest.shared.ts';

export default mergeConfig(
  shared,
  // Random histories by the thousand take more than the usual 5 seconds on a busy machine.
  defineProject({ test: { name: 'contract', testTimeout: 60_000 } }),
);
