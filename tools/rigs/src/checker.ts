/** Pure: what a rig left behind → the promises that were broken. Knows nothing of stores and executors but what is in the evidence. */
import * as effects from './checker/effect-rules.ts';
import { Facts, type Evidence, type Rule, type Violation } from './checker/evidence.ts';
import * as leases from './checker/lease-rules.ts';
import * as state from './checker/state-rules.ts';

export type { Evidence, Look, Violation } from './checker/evidence.ts';

const rules = {
  'runs are whole': state.runsAreWhole,
  'what is acknowledged is kept': state.acknowledgedIsKept,
  'inputs count once': state.inputsCountOnce,
  'recorded results stand': effects.recordedResultsStand,
  'calls begin once per cut': effects.callsBeginOncePerCut,
  'approved and careful calls begin at most once': effects.atMostOnceCalls,
  'only approved calls begin': effects.onlyApprovedCallsBegin,
  'effects follow their save': effects.effectsFollowTheirSave,
  'results are true': effects.resultsAreTrue,
  'responses are asked for once': effects.responsesAreAskedOnce,
  'usage counts each call once': effects.usageCountsEachCallOnce,
  'only the holder acts': leases.onlyTheHolderActs,
  'take-overs are due': leases.takeOversAreDue,
  'refused calls change nothing': leases.refusedChangeNothing,
  'one decision counts': leases.oneDecisionCounts,
  'saves are told truly': leases.savesAreToldTruly,
  'errors are documented': leases.errorsAreDocumented,
  'nobody crashes': leases.nobodyCrashes,
} satisfies Record<string, Rule>;

export type RuleName = keyof typeof rules;
export const ruleNames = Object.keys(rules) as readonly RuleName[];

export function findViolations(evidence: Evidence): readonly Violation[] {
  const facts = new Facts(evidence);
  return ruleNames.flatMap((rule) => [...rules[rule](facts)].map((text) => ({ rule, text })));
}

/** The first few of each rule: one broken promise often shows in many lines. */
export function describeViolations(violations: readonly Violation[]): string {
  const counts = new Map<string, number>();
  const shown = violations.filter(({ rule }) => {
    const count = (counts.get(rule) ?? 0) + 1;
    counts.set(rule, count);
    return count <= 3;
  });
  return shown.map(({ rule, text }) => `${rule} (${counts.get(rule)}): ${text}`).join('\n');
}
