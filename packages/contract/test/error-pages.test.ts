/** Every code has its page in docs/errors, and the page tells the truth about it. */
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SDKError, errorTable, type ErrorCode } from '../src/index.ts';
import { errorSamples } from './support/error-samples.ts';

const folder = new URL('../../../docs/errors/', import.meta.url);
const codes = Object.keys(errorTable) as readonly ErrorCode[];
const pageOf = (code: ErrorCode): string => readFileSync(new URL(`${code}.md`, folder), 'utf8');

function againOn(page: string): string | undefined {
  return /try again: \*\*(.+)\*\*/.exec(page)?.[1];
}

/** All detail fields that any sample of the code has. */
function fieldsOf(code: ErrorCode): readonly string[] {
  return [...new Set(errorSamples[code].flatMap((details) => Object.keys(details)))].sort();
}

describe('docs/errors', () => {
  it('has one page for each code, and no other', () => {
    const pages = readdirSync(folder).filter((name) => name !== 'README.md');
    expect(pages.sort()).toEqual(codes.map((code) => `${code}.md`).sort());
  });

  it('lists each code once, with whether to try again as its page says', () => {
    const index = readFileSync(new URL('README.md', folder), 'utf8');
    const rows = [...index.matchAll(/^\| \[`(LOUSHO_\w+)`\]\(\1\.md\) +\|[^|]*\| ([^|]*?) +\|$/gm)];
    const expected = codes.map((code) => [code, againOn(pageOf(code))]);
    expect(rows.map(([, code, again]) => [code, again]).sort()).toEqual(expected.sort());
  });

  it.each(codes)('%s: names the code, an example of its sentence, all details and what to do', (code) => {
    const page = pageOf(code);
    expect(page.split('\n')[0]).toBe(`# ${code}`);
    expect(page).toContain(`\`\`\`text\n${new SDKError(code, errorSamples[code][0]).message}\n\`\`\``);
    for (const title of ['## What happened', '## What it carries', '## What to do'])
      expect(page).toContain(title);
    const table = page.slice(page.indexOf('## What it carries'), page.indexOf('## What to do'));
    const rows = [...table.matchAll(/^\| `(\w+)`/gm)]
      .map(([, field]) => field)
      .filter((field) => field !== 'details');
    expect(rows.sort()).toEqual(fieldsOf(code));
  });

  it.each(codes)('%s: names the class', (code) => {
    const others: { readonly [code: string]: string } = {
      LOUSHO_SESSION_AWAITING_APPROVAL: 'SessionAwaitingApprovalError',
      LOUSHO_TOOL_PROPAGATED: 'PropagatingToolError',
      LOUSHO_PROVIDER_ERROR: 'LLMProviderError',
    };
    const isConfiguration = /_CONFIG_|_INPUT_EMPTY$|_STORE_VERSION_|_SCHEDULE_INVALID$/.test(code);
    const expected = others[code] ?? (isConfiguration ? 'ConfigurationError' : 'SDKError');
    expect(/^`(\w+)` · try again/m.exec(pageOf(code))?.[1]).toBe(expected);
  });

  it.each(codes)('%s: says rightly whether to try again', (code) => {
    const expected =
      code === 'LOUSHO_PROVIDER_ERROR' ? 'as the provider says' : errorTable[code].retryable ? 'yes' : 'no';
    expect(againOn(pageOf(code))).toBe(expected);
  });
});
