/** `lousho verify-store <subject>`: asks a store for the promises that it claims, and says which it breaks, and why. */
import fs from 'node:fs';
import path from 'node:path';
import type { ConformanceReport, RuleResult, StoreSubject } from '@lousho/testing/conformance';
import { CliError } from '../cli-error.ts';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';
import { isObject } from '../load-config.ts';
import { loadModule } from '../load-module.ts';
import { bad, dim, good, type Line } from '../terminal/styled-line.ts';
import { count, duration } from '../terminal/words.ts';

interface VerifyOptions {
  readonly only?: readonly string[];
}

export function registerVerifyStore(cli: Cli): void {
  cli.program
    .command('verify-store <subject>')
    .description(
      'ask your own store for the promises that it claims; <subject> is a module that exports a StoreSubject',
    )
    .option('--only <rules...>', 'numbers, names or groups, for example L3 or leases')
    .action(
      cli.action((context, file: string, options: VerifyOptions) => verifyStore(context, file, options)),
    );
}

/** 1 when a promise is broken. */
async function verifyStore(context: Context, file: string, { only }: VerifyOptions): Promise<ExitCode> {
  const subject = await loadSubject(path.resolve(context.cwd, file), file);
  const { out } = context;
  const results: RuleResult[] = [];
  for (const group of await groupsOf(only)) {
    out.progress(`${subject.name}: ${group.name}`);
    const report = await check(subject, group.rules);
    results.push(...report.results);
    if (!out.json) await out.lines(groupLines(group.name, report));
  }
  out.progress(undefined);
  const failed = results.filter(({ outcome }) => outcome === 'failed');
  if (out.json)
    await out.document({
      subject: subject.name,
      claims: subject.claims,
      passed: failed.length === 0,
      results: results.map(resultDocument),
    });
  const kept = results.filter(({ outcome }) => outcome === 'passed').length;
  const told = `${subject.name} keeps ${count(kept, 'promise')}`;
  out.note(
    failed.length === 0 ? [good('✓ '), `${told}.`] : [bad('✗ '), `${told} and breaks ${failed.length}.`],
  );
  return failed.length === 0 ? exitCodes.ok : exitCodes.failure;
}

async function check(subject: StoreSubject, only: readonly string[]): Promise<ConformanceReport> {
  const { check: checkStore } = await import('@lousho/testing/conformance');
  return checkStore(subject, { only });
}

interface Group {
  readonly name: string;
  readonly rules: readonly string[];
}

/** By group, so that a person sees how far it is. @throws LOUSHO_CONFIG_INVALID for a rule that does not exist */
async function groupsOf(only: readonly string[] | undefined): Promise<readonly Group[]> {
  if (only !== undefined) return [{ name: only.join(' '), rules: only }];
  const { conformanceRules } = await import('@lousho/testing/conformance');
  const names = new Set(conformanceRules.map(({ name }) => name.slice(0, name.indexOf('/'))));
  return [...names].map((name) => ({ name, rules: [name] }));
}

async function loadSubject(file: string, shown: string): Promise<StoreSubject> {
  if (!fs.existsSync(file)) throw new CliError('LOUSHO_CLI_USAGE', `There is no file "${shown}".`);
  const { subject, default: byDefault } = await loadModule(file);
  const given = subject ?? byDefault;
  if (isSubject(given)) return given;
  throw new CliError(
    'LOUSHO_CLI_CONFIG_INVALID',
    `"${shown}" exports no subject as "subject" or as its default.`,
    {
      hint: 'A StoreSubject has name, claims and createStorage(clock): see StoreSubject of @lousho/testing/conformance.',
    },
  );
}

function isSubject(value: unknown): value is StoreSubject {
  return (
    isObject(value) &&
    typeof value.name === 'string' &&
    isObject(value.claims) &&
    typeof value.createStorage === 'function'
  );
}

/* ── Report ── */

function groupLines(name: string, { results }: ConformanceReport): readonly Line[] {
  const of = (outcome: RuleResult['outcome']) => results.filter((result) => result.outcome === outcome);
  const [passed, failed, skipped] = [of('passed'), of('failed'), of('skipped')];
  const tookMs = results.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const counts = [
    `${passed.length} kept`,
    ...(failed.length === 0 ? [] : [`${failed.length} broken`]),
    ...(skipped.length === 0 ? [] : [`${skipped.length} not asked`]),
  ].join(', ');
  const reasons = new Set(skipped.map(({ reason = '' }) => reason));
  return [
    [failed.length === 0 ? good('✓ ') : bad('✗ '), name, `  ${counts}`, dim(`  ${duration(tookMs)}`)],
    ...[...reasons].map((reason) => dim(`    ${reason}`)),
    ...failed.flatMap(({ failure }) => ['', ...indented(failure?.message ?? '')]),
    ...(failed.length === 0 ? [] : ['']),
  ];
}

function indented(text: string): readonly Line[] {
  return text.split('\n').map((line) => `    ${line}`);
}

function resultDocument({ rule, outcome, reason, failure, durationMs }: RuleResult): object {
  const { id, name, rule: sentence } = rule;
  return {
    id,
    name,
    rule: sentence,
    outcome,
    reason,
    failure: failure?.message,
    durationMs: Math.round(durationMs),
  };
}
