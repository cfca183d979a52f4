/** What a rule throws, and what its reader gets: the promise, what was expected, what happened, and what to look at. */
import { firstDifference, show } from './difference.ts';
import type { ConformanceRule } from './rule.ts';

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

/** Headings of `docs/contract.md`, by the letter of the promises below them. */
const HEADINGS: { readonly [letter: string]: string } = {
  C: 'checkpoints',
  L: 'leases',
  F: 'fencing',
  H: 'history',
  Q: 'lists',
  A: 'approvals',
  S: 'sessions',
  Z: 'lifecycle',
  W: 'weaker-sentences',
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
  // Where two records differ inside, that says more than all of both.
  const isInside = difference !== undefined && difference.path !== '';
  const maxLength = isInside ? 120 : undefined;
  return [
    `${subjectName} breaks ${rule.id === rule.name ? rule.id : `${rule.id} (${rule.name})`}: ${rule.rule}`,
    `  expected: ${show(expected, maxLength)}`,
    `  actual:   ${show(actual, maxLength)}`,
    ...(isInside
      ? [
          `  differs:  at ${difference.path}: expected ${show(difference.expected)}, got ${show(difference.actual)}`,
        ]
      : []),
    `  hint:     ${hint.replaceAll('\n', '\n            ')}`,
    `  docs:     docs/contract.md#${HEADINGS[rule.id.charAt(0)] ?? 'what-a-store-promises'}`,
  ].join('\n');
}
