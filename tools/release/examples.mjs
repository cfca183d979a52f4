// The examples as somebody has them who copied a folder: installed with their own version ranges from the registry, and started.
import { cpSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { install } from './project.mjs';
import { run } from './run.mjs';

/** Those that end by themselves. What they print is tested in tools/rigs. */
export const examples = [
  'quickstart',
  'human-approval',
  'crash-and-recover',
  'webhook-run-once',
  'third-party-store',
];

export async function startExample(name, { copy, folder, registry }) {
  const project = path.join(folder, name);
  cpSync(path.join(copy, 'docs/examples', name), project, { recursive: true });
  writeFileSync(path.join(project, '.npmrc'), registry.npmrc);
  await install(project);
  await run('npm', ['start'], { cwd: project, timeoutMs: 60_000 });
}
