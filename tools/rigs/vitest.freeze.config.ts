import { defineProject, mergeConfig } from 'vitest/config';
import shared from '../../vitest.shared.ts';

// Not a test: makes the fixtures of what is stored, see CONTRIBUTING.md.
export default mergeConfig(
  { ...shared, test: { ...shared.test, include: ['src/freeze.ts'], reporters: ['default'] } },
  defineProject({ test: { name: 'freeze' } }),
);
