/** What went wrong, on stderr: a sentence, its code, what to do next. With `--json` one document. */
import { SDKError } from '@lousho/contract';
import { CliError } from './cli-error.ts';
import type { OutStream } from './node-io.ts';
import { bad, dim, renderLine, type Line } from './terminal/styled-line.ts';
import { visibleJson } from './terminal/visible-text.ts';

export interface ReportOptions {
  readonly stderr: OutStream;
  readonly json: boolean;
  readonly colors: boolean;
}

export function reportError(error: unknown, { stderr, json, colors }: ReportOptions): void {
  const text = json
    ? visibleJson({ error: errorDocument(error) })
    : errorLines(error)
        .map((line) => renderLine(line, { colors, width: Infinity }))
        .join('\n');
  stderr.write(`${text}\n`);
}

function errorDocument(error: unknown): object {
  if (error instanceof SDKError) {
    const { code, message, hint, details, retryable } = error;
    return { code, message, retryable, details, ...(hint === undefined ? undefined : { hint }) };
  }
  if (error instanceof CliError) {
    const { code, message, hint } = error;
    return { code, message, ...(hint === undefined ? undefined : { hint }) };
  }
  return { message: messageOf(error) };
}

function errorLines(error: unknown): Line[] {
  const lines: Line[] = [[bad('✗ '), messageOf(error), ...codeOf(error)]];
  if (error instanceof SDKError && error.cause !== undefined)
    lines.push(dim(`  cause: ${messageOf(error.cause)}`));
  const hint = error instanceof SDKError || error instanceof CliError ? error.hint : undefined;
  if (hint !== undefined) lines.push(`  ${hint}`);
  return lines;
}

function codeOf(error: unknown) {
  return error instanceof SDKError || error instanceof CliError ? [dim(` [${error.code}]`)] : [];
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
