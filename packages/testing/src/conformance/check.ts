/** The suite without a test runner: every rule, one after the other, and a report. */
import { ConfigurationError, type StoreClaims } from '@lousho/contract';
import { groupOf, type Rule } from './rule.ts';
import { runRule, type RuleResult } from './run-rule.ts';
import { allRules } from './rules.ts';
import type { StoreSubject } from './subject.ts';

export interface ConformanceReport {
  readonly subject: string;
  readonly claims: StoreClaims;
  readonly results: readonly RuleResult[];
  /** No rule failed. */
  readonly passed: boolean;
}
export interface CheckOptions {
  /** Ids (`L3`), names (`leases/one-winner`) or groups (`leases`) of rules. Default: all. */
  readonly only?: readonly string[] | undefined;
}

/**
 * Runs the suite. Never rejects because of the store: what it does wrong is in the report.
 * @throws LOUSHO_CONFIG_INVALID when `only` names a rule that does not exist
 */
export async function check(subject: StoreSubject, { only }: CheckOptions = {}): Promise<ConformanceReport> {
  const results: RuleResult[] = [];
  for (const rule of selectRules(only)) results.push(await runRule(subject, rule));
  return {
    subject: subject.name,
    claims: subject.claims,
    results,
    passed: results.every(({ outcome }) => outcome !== 'failed'),
  };
}

function selectRules(only: readonly string[] | undefined): readonly Rule[] {
  if (only === undefined) return allRules;
  const namesOf = (rule: Rule): string[] => [rule.id, rule.name, groupOf(rule)];
  for (const wanted of only) {
    if (allRules.some((rule) => namesOf(rule).includes(wanted))) continue;
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'only',
      got: wanted,
      want: 'the id, name or group of a rule, for example L3, leases/one-winner or leases',
    });
  }
  return allRules.filter((rule) => namesOf(rule).some((name) => only.includes(name)));
}
