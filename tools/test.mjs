// `npm test`: builds, type-checks, lints and tests every package, then cuts power and fills disks (tools/rigs/faults); its
// last line counts the tests that passed and failed. Arguments go to Nx: `npm test -- -p @lousho/contract`.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const projects = [
  ...readdirSync(path.join(root, 'packages')).map((name) => `packages/${name}`),
  'tools/rigs',
];
// Written by each project's Vitest (vitest.shared.ts), or brought back by Nx from its cache.
const reports = projects.flatMap((project) =>
  ['vitest-report.json', 'vitest-faults-report.json'].map((name) =>
    path.join(root, project, 'coverage', name),
  ),
);

// A report that is there before the run is of an earlier run, maybe of a project that this run leaves out.
for (const report of reports) rmSync(report, { force: true });

const nx = path.join(root, 'node_modules', '.bin', 'nx');
// One after the other: faults need the disk and the processors for themselves.
const rounds = [['build', 'typecheck', 'lint', 'test'], ['faults']];
const haveSucceeded = rounds.every((targets) => {
  const run = spawnSync(nx, ['run-many', '-t', ...targets, ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  return run.status === 0;
});

const counts = reports.filter((report) => existsSync(report)).map(countTests);
const passed = sum(counts.map((count) => count.passed));
const failed = sum(counts.map((count) => count.failed));
const succeeded = haveSucceeded && failed === 0;

// A build, type check or lint that fails has no test to its name: it counts as one.
console.log(`\n${passed} passed, ${succeeded ? 0 : Math.max(failed, 1)} failed`);
process.exitCode = succeeded ? 0 : 1;

function countTests(file) {
  const report = JSON.parse(readFileSync(file, 'utf8'));
  // A file that cannot be loaded fails without a failed test in it.
  const brokenFiles = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && assertionResults.every((assertion) => assertion.status !== 'failed'),
  );
  return { passed: report.numPassedTests, failed: report.numFailedTests + brokenFiles.length };
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
