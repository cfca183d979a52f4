/** Finds and loads `lousho.config`, and says what is wrong with it. */
import fs from 'node:fs';
import path from 'node:path';
import { CliError } from './cli-error.ts';
import type { LoushoConfig } from './config.ts';
import { loadModule } from './load-module.ts';

export const configNames = ['ts', 'mts', 'mjs', 'js', 'cjs'].map((ending) => `lousho.config.${ending}`);

export interface LoadedConfig extends LoushoConfig {
  /** Absolute. */
  readonly file: string;
}

/** `given` is `--config`, else it is looked for in `cwd`. `undefined` when there is none. @throws CliError */
export async function loadConfig(cwd: string, given: string | undefined): Promise<LoadedConfig | undefined> {
  const file = findConfig(cwd, given);
  if (file === undefined) return undefined;
  const { default: config } = await loadModule(file);
  requireConfig(config, file);
  return { ...config, file };
}

function findConfig(cwd: string, given: string | undefined): string | undefined {
  if (given === undefined)
    return configNames.map((name) => path.join(cwd, name)).find((file) => fs.existsSync(file));
  const file = path.resolve(cwd, given);
  if (!fs.existsSync(file)) throw new CliError('LOUSHO_CLI_USAGE', `There is no file "${file}".`);
  return file;
}

function requireConfig(config: unknown, file: string): asserts config is LoushoConfig {
  if (!isObject(config))
    throw invalid(file, 'exports no configuration as its default', 'export default defineConfig({ ... })');
  const { store, agents, ...others } = config;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalid(file, `has "${unknown}", which nobody knows`);
  if (store !== undefined && typeof store !== 'string' && !isObject(store))
    throw invalid(file, 'has a store that is neither a store nor a text such as sqlite:./jobs.db');
  if (agents === undefined) return;
  if (!isObject(agents)) throw invalid(file, 'has agents that are no object { name: agent }');
  for (const [name, agent] of Object.entries(agents))
    if (!isObject(agent) || typeof agent.resume !== 'function')
      throw invalid(file, `has agents.${name}, which createAgent did not make`);
}

export function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null;
}

function invalid(file: string, what: string, hint?: string): CliError {
  return new CliError('LOUSHO_CLI_CONFIG_INVALID', `"${file}" ${what}.`, { hint });
}
