/** `lousho init`: a configuration and a tiny agent in this folder, to begin with. */
import fs from 'node:fs';
import path from 'node:path';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { initFiles } from '../init-files.ts';
import { configNames } from '../load-config.ts';
import { CliError } from '../cli-error.ts';
import { dim, good } from '../terminal/styled-line.ts';

export function registerInit(cli: Cli): void {
  cli.program
    .command('init')
    .description('write lousho.config and a tiny agent into this folder')
    .action(cli.action((context) => init(context)));
}

/** Files are written when all may be; what is there and the same is left as it is. */
async function init(context: Context): Promise<void> {
  const { cwd, out } = context;
  const isTypeScript = fs.existsSync(path.join(cwd, 'tsconfig.json'));
  const files = initFiles(isTypeScript ? 'ts' : 'mjs');
  refuseSecondConfig(
    cwd,
    files.map(({ name }) => name),
  );
  const changed = files.filter(({ name, text }) => textIn(path.join(cwd, name)) !== text);
  const there = changed.filter(({ name }) => fs.existsSync(path.join(cwd, name)));
  if (there.length > 0) await context.confirm(`Replace ${there.map(({ name }) => name).join(' and ')}?`);
  for (const { name, text } of changed) fs.writeFileSync(path.join(cwd, name), text);
  if (out.json) return out.document({ written: changed.map(({ name }) => name) });
  await out.lines(changed.map(({ name }) => [good('✓ '), name]));
  if (changed.length === 0) out.note('Everything is there.');
  const agent = files[0]?.name ?? '';
  out.note(dim('Next:'));
  out.note('  npm install @lousho/cli @lousho/core @lousho/store-file @lousho/testing zod');
  out.note(`  ${isTypeScript ? 'npx tsx' : 'node'} ${agent}`);
  out.note('  npx lousho pending');
}

/** Of two configurations only one is read. */
function refuseSecondConfig(cwd: string, ours: readonly string[]): void {
  const other = configNames.find((name) => !ours.includes(name) && fs.existsSync(path.join(cwd, name)));
  if (other === undefined) return;
  throw new CliError('LOUSHO_CLI_USAGE', `There is a ${other} already.`, {
    hint: 'Move it away, or begin in an empty folder. Nothing was written.',
  });
}

function textIn(file: string): string | undefined {
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : undefined;
}
