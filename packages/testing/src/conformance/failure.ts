/** What a rule throws, and what its reader gets: the promise, what was expected, what happened, and what to look at. */
import { firstDifference, show } from './difference.ts';
import { groupOf, type ConformanceRule } from './rule.ts';

/** Thrown by a rule that found its promise broken. `expected` and `actual` are shown as JSON. */
export class Mismatch extends Error {
  constructor(
    readonly expected: unknown,
    readonly actual: unknown,
    readonly hint: string,
  ) {
    super(hint);
    this.name = 'Mismatch';
  }
}

/** Thrown by a rule that has nothing to ask of this store; the message says why. */
export class NotApplicable extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'NotApplicable';
  }
}

/** Headings of `docs/contract.md`, by the group of a rule. */
const HEADINGS: { readonly [group: string]: string } = {
  checkpoints: 'checkpoints',
  leases: 'leases',
  fencing: 'fencing',
  history: 'history',
  list: 'lists',
  approvals: 'approvals',
  sessions: 'sessions',
  lifecycle: 'lifecycle',
  weaker: 'weaker-sentences',
};

export interface Finding {
  readonly expected: unknown;
  readonly actual: unknown;
  readonly hint: string;
  readonly cause?: unknown;
}

/** A broken promise: which, what was expected, what happened, and what to look at. */
export class ConformanceFailure extends Error {
  readonly rule: ConformanceRule;
  readonly expected: unknown;
  readonly actual: unknown;
  readonly hint: string;

  constructor(subjectName: string, rule: ConformanceRule, finding: Finding) {
    const { expected, actual, hint, cause } = finding;
    super(messageOf(subjectName, rule, finding), cause === undefined ? undefined : { cause });
    this.name = 'ConformanceFailure';
    this.rule = rule;
    this.expected = expected;
    this.actual = actual;
    this.hint = hint;
  }
}

function messageOf(subjectName: string, rule: ConformanceRule, { expected, actual, hint }: Finding): string {
  const difference = firstDifference(expected, actual);
  const isInside = difference !== undefined && difference !== '(whole)';
  return [
    `${subjectName} breaks ${rule.id === rule.name ? rule.id : `${rule.id} (${rule.name})`}: ${rule.rule}`,
    `  expected: ${show(expected)}`,
    `  actual:   ${show(actual)}`,
    ...(isInside ? [`  differs:  at ${difference}`] : []),
    `  hint:     ${hint.replaceAll('\n', '\n            ')}`,
    `  docs:     docs/contract.md#${HEADINGS[groupOf(rule)] ?? 'what-a-store-promises'}`,
  ].join('\n');
}
