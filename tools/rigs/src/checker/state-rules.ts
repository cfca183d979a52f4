/** What is stored: whole, in order, with everything in it that was ever acknowledged. */
import { textOf, type Checkpoint, type ToolResultPart } from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';
import { chainsOf, hashOf, type CheckpointDigest } from '../../workers/transcript-digest.mjs';
import type { LineOf } from '../effect-log.ts';
import type { Facts, Indexed } from './evidence.ts';

/** Each call has exactly one result, in call order, and nothing is left over. */
export function* runsAreWhole({ evidence }: Facts): Iterable<string> {
  for (const [session, final] of evidence.finals) {
    if (final === null) {
      yield `${session} is not there.`;
      continue;
    }
    if (final.status !== 'finished') yield `${session} is ${final.status}.`;
    for (const problem of transcriptProblems(final.messages)) yield `${session}: ${problem}`;
    const left = [
      ...final.settledResults,
      ...final.heldInput,
      ...final.approvals,
      ...final.startedToolCallIds,
    ];
    if (left.length > 0)
      yield `${session} has finished with ${left.length} results, inputs or marks left over.`;
    const ids = [...resultsOf(final).keys()];
    const placed = final.messages.filter(({ role }) => role === 'tool').length;
    if (ids.length !== placed) yield `${session} has ${placed} results for ${ids.length} calls.`;
  }
}

/** What a store acknowledged is there ever after, for every handle. */
export function* acknowledgedIsKept(facts: Facts): Iterable<string> {
  const { looks, finals } = facts.evidence;
  const acknowledged = facts.all('save.acknowledged');
  const last = [...finals].map(([session, checkpoint]) => ({ session, checkpoint, logLength: Infinity }));
  for (const { session, checkpoint, logLength } of [...looks, ...last]) {
    const before = acknowledged.filter((line) => line.session === session && line.index < logLength);
    const when = logLength === Infinity ? 'At the end' : `After line ${logLength}`;
    const found = checkpoint === null ? undefined : new StoredState(checkpoint);
    for (const line of before)
      for (const missing of missingFrom(found, line))
        yield `${when} ${session} lacks ${missing}, acknowledged by ${line.op} in line ${line.index}.`;
  }
}

class StoredState {
  readonly chains: readonly string[];
  readonly results: ReadonlyMap<string, ToolResultPart>;
  readonly inputIds: ReadonlySet<string>;
  readonly decisions: ReadonlyMap<string, KeptDecision>;

  constructor(checkpoint: Checkpoint) {
    this.chains = chainsOf(checkpoint.messages);
    this.results = resultsOf(checkpoint);
    this.inputIds = new Set(checkpoint.inputIds);
    this.decisions = decisionsOf(checkpoint);
  }
}

function* missingFrom(
  found: StoredState | undefined,
  { digest }: Indexed<LineOf<'save.acknowledged'>>,
): Iterable<string> {
  if (found === undefined) {
    yield 'everything';
    return;
  }
  if (found.chains[digest.messageCount] !== digest.chain) yield `messages (${digest.messageCount})`;
  for (const [callId, hash] of digest.settled) {
    const result = found.results.get(callId);
    if (result === undefined || hashOf(result) !== hash) yield `the result of ${callId}`;
  }
  for (const decision of digest.decisions)
    if (!holdsDecision(found, decision)) yield `decision ${decision.id}`;
  for (const inputId of digest.inputIds) if (!found.inputIds.has(inputId)) yield `input ${inputId}`;
}

function holdsDecision(
  found: StoredState,
  { id, approved, by }: CheckpointDigest['decisions'][number],
): boolean {
  const kept = found.decisions.get(id);
  return kept?.approved === approved && kept.by === by;
}

/** An accepted input is in the conversation once; no input is there twice. */
export function* inputsCountOnce(facts: Facts): Iterable<string> {
  const { finals } = facts.evidence;
  const resolved = new Set(
    facts.all('op.ended').flatMap(({ op, outcome }) => (outcome.type === 'resolved' ? [op] : [])),
  );
  for (const { op, session, inputId } of facts.all('op.began')) {
    if (inputId === undefined) continue;
    const final = finals.get(session);
    const said = final?.messages.filter(
      (message) => message.role === 'user' && textOf(message) === `Input ${inputId}`,
    );
    const count = said?.length ?? 0;
    const isAccepted = resolved.has(op) || final?.inputIds.includes(inputId) === true;
    if (count > 1) yield `${session} holds input ${inputId} ${count} times.`;
    if (count === 0 && isAccepted) yield `${session} lost input ${inputId}, which ${op} gave it.`;
  }
}

export function resultsOf({ messages, settledResults }: Checkpoint): ReadonlyMap<string, ToolResultPart> {
  const placed = messages.flatMap((message) => (message.role === 'tool' ? [message.content[0]] : []));
  return new Map([...placed, ...settledResults].map((result) => [result.toolCallId, result]));
}

export type KeptDecision = { readonly approved: boolean; readonly by?: string };

/** By approval id: of calls that wait for their result, and of those that have it. */
export function decisionsOf(checkpoint: Checkpoint): ReadonlyMap<string, KeptDecision> {
  const decisions = new Map<string, KeptDecision>();
  for (const { id, decision } of checkpoint.approvals)
    if (decision !== undefined) decisions.set(id, decision);
  for (const { approval } of resultsOf(checkpoint).values())
    if (approval !== undefined) decisions.set(approval.id, approval);
  return decisions;
}
