/** Values on the command line: JSON as it is, or `@file` with JSON in it. */
import fs from 'node:fs';
import path from 'node:path';
import type { JsonValue } from '@lousho/contract';
import { CliError } from './cli-error.ts';

/** @param option how it is named in the message @throws CliError LOUSHO_CLI_USAGE */
export function jsonArgument(text: string, option: string, cwd: string): JsonValue {
  const json = text.startsWith('@') ? readText(path.resolve(cwd, text.slice(1)), option) : text;
  try {
    return JSON.parse(json) as JsonValue;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError('LOUSHO_CLI_USAGE', `${option} is no JSON: ${reason}`, {
      hint: 'Give JSON in quotes of the shell, or @file with JSON in it.',
      cause: error,
    });
  }
}

/** @throws CliError LOUSHO_CLI_USAGE */
export function readText(file: string, option: string): string {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    throw new CliError('LOUSHO_CLI_USAGE', `${option}: "${file}" cannot be read.`, { cause: error });
  }
}
