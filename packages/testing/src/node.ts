/** The rules of the contract that only real processes can show: killed in the middle of a save, stopped over a take-over. Node only. */
import { registerRules } from './conformance/register.ts';
import type { StoreSubject, TestRunner } from './conformance/subject.ts';
import { processRules } from './node/process-rules.ts';
import { runProcessRule } from './node/run-process-rule.ts';

/**
 * One test a rule, each with processes of its own. The storage of the subject needs `childProcess`; its module must be one that plain
 * Node can import, for example the built store. Takes about a minute: run it beside the other tests, not in every loop.
 */
export function registerProcessConformance(subject: StoreSubject, runner: TestRunner): void {
  const title = `${subject.name} keeps the store contract over processes`;
  registerRules(title, subject, processRules, (rule) => runProcessRule(subject, rule), runner);
}
