/** Who may act: one holder at a time, a take-over only from one that is gone, and nothing by those who were told no. */
import type { LineOf, UnderLease } from '../effect-log.ts';
import { executionOf, groupBy, type Facts, type Indexed } from './evidence.ts';
import { decisionsOf } from './state-rules.ts';

/** What a lease that somebody else took over began or saved after that. */
export function* onlyTheHolderActs(facts: Facts): Iterable<string> {
  for (const line of [...facts.all('model.asked'), ...facts.all('tool.started')]) {
    const taken = facts.takenOver(line);
    if (taken !== undefined && taken.at < line.turnAt)
      yield `${line.session}: ${line.op} began ${line.kind} in line ${line.index}; line ${taken.index} had taken its lease.`;
  }
  for (const line of facts.all('save.acknowledged')) {
    const taken = facts.takenOver(line);
    if (taken !== undefined && taken.at < line.askedAt)
      yield `${line.session}: ${line.op} saved in line ${line.index}; line ${taken.index} had taken its lease.`;
  }
}

/** Stores count whole milliseconds, of a clock that may be adjusted meanwhile. */
const CLOCK_GRAIN_MS = 5;

/** A lease is taken when it was given back, when its run was deleted, when its holder died, or two periods after it was last renewed. */
export function* takeOversAreDue(facts: Facts): Iterable<string> {
  const renewals = groupBy(facts.all('lease.renewed'), leaseOf);
  const releases = new Map(facts.all('lease.releasing').map((line) => [leaseOf(line), line.index]));
  const deletions = groupBy(facts.all('run.deleting'), ({ session }) => session);
  const ends = new Map(facts.all('op.ended').map(({ op, index }) => [op, index]));
  for (const [session, takings] of facts.allTakings) {
    for (const [position, taken] of takings.entries()) {
      const held = takings[position - 1];
      if (held === undefined) continue;
      if (held.fence === taken.fence) {
        yield `${session}: lines ${held.index} and ${taken.index} have the same fence.`;
        continue;
      }
      const freeAt = Math.min(
        releases.get(leaseOf(held)) ?? Infinity,
        (deletions.get(session) ?? []).find(({ index }) => index > held.index)?.index ?? Infinity,
        facts.goneAt(held.worker),
        ends.get(held.op) ?? Infinity,
      );
      const renewedAt = Math.max(
        held.askedAt,
        ...(renewals.get(leaseOf(held)) ?? []).map(({ askedAt }) => askedAt),
      );
      const waitedMs = taken.at - renewedAt;
      if (freeAt > taken.index && waitedMs < 2 * facts.evidence.leaseTtlMs - CLOCK_GRAIN_MS)
        yield `${session}: line ${taken.index} took the lease of ${held.op}, renewed ${Math.round(waitedMs)} ms before.`;
    }
  }
}

/** An operation may take the lease of one turn twice: given back when it found that the turn is not next, and again when it is. */
function leaseOf(line: UnderLease): string {
  return `${executionOf(line)} ${line.fence}`;
}

/** Codes that say: nothing happened. */
const refusals = new Set([
  'LOUSHO_SESSION_AWAITING_APPROVAL',
  'LOUSHO_APPROVAL_DECIDED',
  'LOUSHO_APPROVAL_ORPHANED',
  'LOUSHO_APPROVAL_NOT_FOUND',
]);
const effectKinds = new Set(['model.asked', 'tool.started', 'save.acknowledged']);

/** Who was refused changed nothing: no effect, no save, no input, no decision. */
export function* refusedChangeNothing(facts: Facts): Iterable<string> {
  const { finals } = facts.evidence;
  const leased = new Set(facts.all('lease.taken').map(({ op }) => op));
  const refused = new Map<string, Indexed<LineOf<'op.ended'>>>();
  for (const line of facts.all('op.ended')) {
    const { outcome, op } = line;
    if (outcome.type !== 'rejected') continue;
    if (!leased.has(op) || refusals.has(outcome.code ?? '')) refused.set(op, line);
  }
  for (const line of facts.lines)
    if ('op' in line && refused.has(line.op) && effectKinds.has(line.kind))
      yield `${line.session}: ${line.op} was refused and wrote ${line.kind} in line ${line.index}.`;
  for (const [inputId, sends] of groupBy(facts.all('op.began'), ({ inputId }) => inputId))
    if (inputId !== undefined && sends.every(({ op }) => refused.has(op)))
      for (const { session } of sends)
        if (finals.get(session)?.inputIds.includes(inputId))
          yield `${session}: everybody who sent ${inputId} was refused, and it is there.`;
  for (const [session, final] of finals) {
    if (final === null) continue;
    for (const [id, { by }] of decisionsOf(final))
      if (by !== undefined && refused.has(by))
        yield `${session}: ${by} was refused and its decision counts for ${id}.`;
  }
}

/** Of those who decide one call, the decision of exactly one counts; whoever got an answer knows which. */
export function* oneDecisionCounts(facts: Facts): Iterable<string> {
  const outcomes = new Map(facts.all('op.ended').map(({ op, outcome }) => [op, outcome]));
  for (const { op, session, approvalId } of facts.all('op.decided')) {
    if (outcomes.get(op)?.type !== 'resolved') continue;
    const final = facts.evidence.finals.get(session);
    const kept = final ? decisionsOf(final).get(approvalId) : undefined;
    if (kept !== undefined && kept.by !== op)
      yield `${session}: ${op} was told that its decision on ${approvalId} counts, and that of ${kept.by} does.`;
  }
}

/** A run tells of a save when the store has acknowledged it. */
export function* savesAreToldTruly(facts: Facts): Iterable<string> {
  const last = new Map<string, Indexed<LineOf<'save.acknowledged'>>>();
  for (const line of facts.lines) {
    if (line.kind === 'save.acknowledged') last.set(executionOf(line), line);
    if (line.kind !== 'event.saved') continue;
    const digest = last.get(executionOf(line))?.digest;
    if (digest?.status !== line.status || digest.stepIndex !== line.step)
      yield `${line.session}: line ${line.index} tells of a save that the store did not acknowledge.`;
  }
}

export const documentedCodes: ReadonlySet<string> = new Set([
  ...refusals,
  'LOUSHO_SESSION_BUSY',
  // Of a process that says goodbye: first its agent starts nothing new, then its store is closed.
  'LOUSHO_SHUTDOWN',
  'LOUSHO_STORE_CLOSED',
]);

/** Whoever loses a race gets one of a few codes. */
export function* errorsAreDocumented(facts: Facts): Iterable<string> {
  for (const { op, session, outcome } of facts.all('op.ended'))
    if (outcome.type === 'rejected' && !documentedCodes.has(outcome.code ?? ''))
      yield `${session}: ${op} got ${outcome.code ?? 'no code'}: ${outcome.message} ${outcome.cause ?? ''}`;
}

/** Processes die of nothing but kills. */
export function* nobodyCrashes(facts: Facts): Iterable<string> {
  for (const { worker, text } of facts.all('worker.crashed')) yield `${worker} died of ${text}`;
}
