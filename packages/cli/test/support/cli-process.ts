/** The built `lousho` as a process of its own. */
import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import type { CliResult } from './run-cli.ts';

export const bin = path.resolve(import.meta.dirname, '../../dist/bin.js');

export interface ProcessOptions {
  readonly cwd: string;
  readonly env?: { readonly [name: string]: string };
  readonly input?: string;
}

export function lousho(args: readonly string[], { cwd, env, input }: ProcessOptions): CliResult {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
    ...{ cwd, encoding: 'utf8', env: ownEnv(env), maxBuffer: 64 * 1024 * 1024 },
    ...(input === undefined ? undefined : { input }),
  });
  if (status === null) throw new Error(`lousho ended by ${signal}: ${stderr}`);
  return { exitCode: status, stdout, stderr };
}

/** Started, not waited for. */
export function startLousho(args: readonly string[], { cwd, env }: ProcessOptions) {
  return spawn(process.execPath, [bin, ...args], { cwd, env: ownEnv(env), stdio: ['pipe', 'pipe', 'pipe'] });
}

/** What Vitest tells Node and terminals is not meant for it. */
function ownEnv(more: ProcessOptions['env']): NodeJS.ProcessEnv {
  const inherited = /^(?:NODE_OPTIONS|NODE_ENV|VITEST.*|FORCE_COLOR|NO_COLOR)$/;
  return {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !inherited.test(name))),
    ...more,
  };
}
