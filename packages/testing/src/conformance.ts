/** The conformance suite: asks any store for the promises of the contract that it claims to keep. */
import type { ConformanceRule } from './conformance/rule.ts';
import { allRules } from './conformance/rules.ts';

export { check, type CheckOptions, type ConformanceReport } from './conformance/check.ts';
export { ConformanceFailure } from './conformance/failure.ts';
export { registerConformance } from './conformance/register.ts';
export { type ConformanceRule } from './conformance/rule.ts';
export { type RuleResult } from './conformance/run-rule.ts';
export { type StorageUnderTest, type StoreSubject, type TestRunner } from './conformance/subject.ts';

/** Every rule that needs one process only. Those that need more are in `@lousho/testing/node`. */
export const conformanceRules: readonly ConformanceRule[] = allRules;
