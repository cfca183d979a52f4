/** Two states → the event between them: what a save adds to the log. */
import type { Checkpoint } from './checkpoint.ts';
import { undecidedIds, type LogEvent } from './checkpoint-log.ts';
import { extendsList } from './freeze.ts';
import { jsonEqual, objectOf, type JsonValue } from './json.ts';
import type { Message, ToolResultPart } from './messages.ts';
import { packUsage } from './packed-usage.ts';

/** Fields that a run sets once. */
const FACTS = [
  'version',
  'runId',
  'agentName',
  'runInput',
  'fingerprint',
  'runConfig',
  'principal',
  'metadata',
  'forkedFrom',
] as const;
/** Fields with a place of their own in the event. */
const PLACED: ReadonlySet<string> = new Set([
  ...FACTS,
  'savedAt',
  'stepIndex',
  'status',
  'usage',
  'messages',
  'settledResults',
  'heldInput',
  'inputIds',
  'businessState',
  'approvals',
  'startedToolCallIds',
  'delegatedInFlight',
]);
/** Fields that follow from `approvals` while the run waits for a person. */
const DERIVED: ReadonlySet<string> = new Set(['approvalId', 'approvalIds']);

/** A log whose messages the first base of another may stand on. */
export interface SharedPrefix {
  readonly of: string;
  readonly messages: readonly Message[];
}

/** What this save adds to the log whose last state is `known`. Both must be deeply frozen, or never change. */
export function nextEvent(
  known: Checkpoint | undefined,
  checkpoint: Checkpoint,
  prefix?: SharedPrefix,
): LogEvent {
  return {
    t: packTime(checkpoint.savedAt),
    s: checkpoint.stepIndex,
    n: checkpoint.messages.length,
    ...(checkpoint.status === 'in-progress' ? undefined : { z: checkpoint.status }),
    u: packUsage(checkpoint.usage, checkpoint.fingerprint?.model),
    ...factsOf(known, checkpoint),
    ...volatileOf(checkpoint),
    ...(known === undefined ? baseContent(checkpoint, prefix) : changedContent(known, checkpoint)),
  };
}

function factsOf(known: Checkpoint | undefined, checkpoint: Checkpoint): Pick<LogEvent, 'f'> | undefined {
  if (known !== undefined && FACTS.every((fact) => sameValue(known[fact], checkpoint[fact])))
    return undefined;
  return {
    f: objectOf(
      FACTS.filter((fact) => checkpoint[fact] !== undefined).map((fact) => [
        fact,
        checkpoint[fact] as JsonValue,
      ]),
    ),
  };
}

function volatileOf(checkpoint: Checkpoint): Pick<LogEvent, 'v'> | undefined {
  let fields: { [field: string]: JsonValue } | undefined;
  const set = (field: string, value: unknown): void => {
    fields ??= {};
    // An own key even when a store author's field is called `__proto__`.
    Object.defineProperty(fields, field, { value, enumerable: true, configurable: true, writable: true });
  };
  if (checkpoint.approvals.length > 0) set('approvals', checkpoint.approvals);
  if (checkpoint.startedToolCallIds.length > 0) set('startedToolCallIds', checkpoint.startedToolCallIds);
  if (checkpoint.delegatedInFlight.length > 0) set('delegatedInFlight', checkpoint.delegatedInFlight);
  const derived = checkpoint.status === 'awaiting-approval' && followsFromApprovals(checkpoint);
  for (const field in checkpoint) {
    if (PLACED.has(field) || (derived && DERIVED.has(field))) continue;
    const value = (checkpoint as unknown as Record<string, unknown>)[field];
    if (value !== undefined) set(field, value);
  }
  return fields === undefined ? undefined : { v: fields };
}

function baseContent(checkpoint: Checkpoint, prefix: SharedPrefix | undefined): Partial<LogEvent> {
  const shared =
    prefix !== undefined && beginsWith(checkpoint.messages, prefix.messages) ? prefix : undefined;
  return {
    b: shared === undefined ? 1 : { of: shared.of, n: shared.messages.length },
    ...listField('m', checkpoint.messages.slice(shared?.messages.length ?? 0)),
    ...listField('r', checkpoint.settledResults),
    ...listField('h', checkpoint.heldInput),
    ...listField('i', checkpoint.inputIds),
    ...(checkpoint.businessState === undefined ? undefined : { w: [checkpoint.businessState] as const }),
  };
}

/** By origin, or object by object: both are frozen, so the same object is the same message. */
function beginsWith(messages: readonly Message[], beginning: readonly Message[]): boolean {
  if (beginning.length === 0 || beginning.length > messages.length) return false;
  return extendsList(beginning, messages) || beginning.every((message, index) => message === messages[index]);
}

function changedContent(known: Checkpoint, checkpoint: Checkpoint): Partial<LogEvent> {
  const kept = commonLength(known.messages, checkpoint.messages);
  const added = checkpoint.messages.slice(kept);
  const results = resultChanges(known.settledResults, checkpoint.settledResults, added);
  return {
    ...(kept < known.messages.length ? { k: kept } : undefined),
    ...listField('m', results.messages),
    ...results.change,
    ...(sameValue(known.heldInput, checkpoint.heldInput) ? undefined : { h: checkpoint.heldInput }),
    ...idChanges(known.inputIds, checkpoint.inputIds),
    ...stateChange(known, checkpoint),
  };
}

/** How many messages both begin with: by origin where that is known, else by content. */
function commonLength(known: readonly Message[], next: readonly Message[]): number {
  if (extendsList(known, next)) return known.length;
  const most = Math.min(known.length, next.length);
  let length = 0;
  while (length < most && sameValue(known[length], next[length])) length += 1;
  return length;
}

/** A result that settled early is in the log already: its message only names it. */
function resultChanges(
  known: readonly ToolResultPart[],
  next: readonly ToolResultPart[],
  added: readonly Message[],
): { readonly messages: readonly (Message | string)[]; readonly change: Partial<LogEvent> | undefined } {
  if (known.length === 0) return { messages: added, change: listField('r', next) };
  const left = [...known];
  const messages = added.map((message) => {
    if (message.role !== 'tool') return message;
    const [result] = message.content;
    // The first one with this id, as the reader takes it.
    const index = left.findIndex((early) => early.toolCallId === result.toolCallId);
    const early = left[index];
    if (early === undefined || !isMessageOf(early, message)) return message;
    left.splice(index, 1);
    return early.toolCallId;
  });
  const appended = next.slice(left.length);
  if (left.every((result, index) => sameValue(result, next[index])))
    return { messages, change: listField('r', appended) };
  return { messages: added, change: { R: next } };
}

function isMessageOf(result: ToolResultPart, message: Message): boolean {
  const keys = Object.keys(message).length;
  return message.role === 'tool' && keys === 2 && sameValue(message.content[0], result);
}

function idChanges(known: readonly string[], next: readonly string[]): Partial<LogEvent> | undefined {
  if (known === next) return undefined;
  if (extendsList(known, next) || known.every((id, index) => id === next[index]))
    return listField('i', next.slice(known.length));
  return { I: next };
}

function stateChange(known: Checkpoint, checkpoint: Checkpoint): Pick<LogEvent, 'w'> | undefined {
  if (sameValue(known.businessState, checkpoint.businessState)) return undefined;
  return { w: checkpoint.businessState === undefined ? [] : [checkpoint.businessState] };
}

function listField<Key extends string, Item>(
  key: Key,
  items: readonly Item[],
): { readonly [K in Key]?: readonly Item[] } | undefined {
  return items.length === 0 ? undefined : ({ [key]: items } as { readonly [K in Key]: readonly Item[] });
}

/** Frozen values that were not touched are the same object, so the comparison by content is rare. */
function sameValue(a: unknown, b: unknown): boolean {
  return (
    a === b ||
    (typeof a === 'object' &&
      typeof b === 'object' &&
      a !== null &&
      b !== null &&
      jsonEqual(a as JsonValue, b as JsonValue))
  );
}

function followsFromApprovals(checkpoint: Checkpoint & { readonly status: 'awaiting-approval' }): boolean {
  const ids = undecidedIds(checkpoint.approvals);
  return checkpoint.approvalId === ids[0] && sameValue(checkpoint.approvalIds, ids);
}

function packTime(iso: string): number | string {
  const epochMs = Date.parse(iso);
  return !Number.isNaN(epochMs) && new Date(epochMs).toISOString() === iso ? epochMs : iso;
}
