import { defineProject, mergeConfig } from 'vitest/config';
import shared from '../../vitest.shared.ts';

// Power cuts, full disks and signals: one file at a time, as they need the disk and the processors for themselves.
export default mergeConfig(
  {
    ...shared,
    test: {
      ...shared.test,
      include: ['faults/**/*.test.ts'],
      outputFile: { json: 'coverage/vitest-faults-report.json' },
    },
  },
  defineProject({
    test: { name: 'faults', fileParallelism: false, testTimeout: 300_000, hookTimeout: 120_000 },
  }),
);
