/** Pure: what a rig left behind → the promises that were broken. Knows nothing of stores and executors but what is in the evidence. */
import * as effects from './checker/effect-rules.ts';
import { Facts, type Evidence, type Rule, type Violation } from './checker/evidence.ts';
import * as leases from './checker/lease-rules.ts';
import * as sessions from './checker/session-rules.ts';
import type { SessionEvidence, SessionRule } from './checker/session-rules.ts';
import * as state from './checker/state-rules.ts';

export type { Evidence, Look, Violation } from './checker/evidence.ts';
export type { SessionEvidence } from './checker/session-rules.ts';

/** With the numbers of docs/contract.md. */
const rules = {
  'G1 G2 G6: runs are whole': state.runsAreWhole,
  'G15: what is acknowledged is kept': state.acknowledgedIsKept,
  'G18: inputs count once': state.inputsCountOnce,
  'G3: recorded results stand': effects.recordedResultsStand,
  'N1: calls begin once per cut': effects.callsBeginOncePerCut,
  'G7: approved and careful calls begin at most once': effects.atMostOnceCalls,
  'G8 G9: only approved calls begin': effects.onlyApprovedCallsBegin,
  'G5: effects follow their save': effects.effectsFollowTheirSave,
  'G1: results are true': effects.resultsAreTrue,
  'G4: responses are asked for once': effects.responsesAreAskedOnce,
  'G23: usage counts each call once': effects.usageCountsEachCallOnce,
  'G13 G14: only the holder acts': leases.onlyTheHolderActs,
  'L2 L4 L7: take-overs are due': leases.takeOversAreDue,
  'G10 G13: refused calls change nothing': leases.refusedChangeNothing,
  'G10: one decision counts': leases.oneDecisionCounts,
  'G15: saves are told truly': leases.savesAreToldTruly,
  'G27: errors are documented': leases.errorsAreDocumented,
  'nobody crashes': leases.nobodyCrashes,
} satisfies Record<string, Rule>;

export type RuleName = keyof typeof rules;
export const ruleNames = Object.keys(rules) as readonly RuleName[];

export function findViolations(evidence: Evidence): readonly Violation[] {
  const facts = new Facts(evidence);
  return ruleNames.flatMap((rule) => [...rules[rule](facts)].map((text) => ({ rule, text })));
}

/** What holds for a run of its own and for a turn alike. */
const rulesOfTurns: readonly RuleName[] = [
  'G3: recorded results stand',
  'N1: calls begin once per cut',
  'G7: approved and careful calls begin at most once',
  'G8 G9: only approved calls begin',
  'G5: effects follow their save',
  'G4: responses are asked for once',
  'G13 G14: only the holder acts',
  'L2 L4 L7: take-overs are due',
  'G15: saves are told truly',
  'nobody crashes',
];

const rulesOfSessions = {
  'G1 G2 G6: transcripts are whole': sessions.transcriptsAreWhole,
  'G15 G18: inputs stand once, in order': sessions.inputsStandOnceInOrder,
  'G15: replies are those given': sessions.repliesAreThoseGiven,
  'G1: results came from calls': sessions.resultsCameFromCalls,
  'G23: usage is that of the turns': sessions.usageIsThatOfTheTurns,
  'nothing but the transcript is left': sessions.nothingElseIsLeft,
  'G27: refusals are documented': sessions.refusalsAreDocumented,
} satisfies Record<string, SessionRule>;

export type SessionRuleName = keyof typeof rulesOfSessions;
export const sessionRuleNames = Object.keys(rulesOfSessions) as readonly SessionRuleName[];

export function findSessionViolations(evidence: SessionEvidence): readonly Violation[] {
  const facts = new Facts(evidence);
  return [
    ...rulesOfTurns.flatMap((rule) => [...rules[rule](facts)].map((text) => ({ rule, text }))),
    ...sessionRuleNames.flatMap((rule) =>
      [...rulesOfSessions[rule](facts, evidence)].map((text) => ({ rule, text })),
    ),
  ];
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
