/**
 * The one codec of every store that appends: a save becomes an event, the events of an id are its log, and the log is the history.
 *
 * An event holds what the save adds to the content (messages, early results, held input) and the whole volatile header, compact. So a
 * save costs what is new, and the header of a run is its last `f` and its last event: listing never reads a log. Property: for every
 * sequence of checkpoints, folding their events gives the last one back, and any cut between two events is a saved state.
 */
import type {
  Checkpoint,
  CheckpointApproval,
  CheckpointHeader,
  CheckpointHistoryEntry,
  CheckpointStatus,
  DelegatedInFlight,
} from './checkpoint.ts';
import { deepFreeze, extendsList } from './freeze.ts';
import { jsonEqual, objectOf, type JsonValue } from './json.ts';
import type { Message, ToolResultPart } from './messages.ts';
import { packUsage, unpackUsage, type PackedUsage } from './packed-usage.ts';

/** Short keys: every save writes them. Absent means the usual value, or unchanged where that is said. */
export interface LogEvent {
  /** `savedAt`, epoch milliseconds; a time of another form is kept as text. */
  readonly t: number | string;
  /** `stepIndex`. */
  readonly s: number;
  /** Number of messages after this event. */
  readonly n: number;
  /** `status`; absent: in-progress. */
  readonly z?: CheckpointStatus;
  /** `usage`, packed. */
  readonly u: PackedUsage;
  /** The facts of the run: what does not change while it executes. Absent: unchanged. */
  readonly f?: { readonly [fact: string]: JsonValue };
  /** The other volatile header fields that are there, by their own names. */
  readonly v?: { readonly [field: string]: JsonValue };

  /** A base: everything before it is void. With `of`, its first messages are the first `n` of the log of that id. */
  readonly b?: 1 | { readonly of: string; readonly n: number };
  /** Keep only the first so many messages, then append. */
  readonly k?: number;
  /** Messages appended. A text stands for the tool message of the early result with that call id. */
  readonly m?: readonly (Message | string)[];
  /** Early results appended, or (`R`) replaced. Those that `m` names are taken out. */
  readonly r?: readonly ToolResultPart[];
  readonly R?: readonly ToolResultPart[];
  /** Held input, whole. Absent: unchanged. */
  readonly h?: readonly Message[];
  /** Input ids appended, or (`I`) replaced. */
  readonly i?: readonly string[];
  readonly I?: readonly string[];
  /** `businessState` in a list, `[]` when it was removed. Absent: unchanged. */
  readonly w?: readonly [] | readonly [JsonValue];
}

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

/** The state after the events, not yet checked (`parseCheckpoint` does that); `null` when there are none. */
export function foldEvents(
  events: Iterable<LogEvent>,
  messagesOf: (of: string) => readonly Message[] | undefined = noPrefix,
): unknown {
  const fold = new LogFold(messagesOf);
  for (const event of events) fold.apply(event);
  return fold.state();
}

/** The newest `limit` states, newest first, each sharing its messages with the others. */
export function historyOf(
  events: Iterable<LogEvent>,
  limit: number,
  parse: (state: unknown) => Checkpoint,
  messagesOf: (of: string) => readonly Message[] | undefined = noPrefix,
): CheckpointHistoryEntry[] {
  const all = [...events];
  const fold = new LogFold(messagesOf);
  const entries: CheckpointHistoryEntry[] = [];
  all.forEach((event, index) => {
    fold.apply(event);
    if (index < all.length - limit) return;
    fold.freezeMessages();
    const checkpoint = parse(fold.state());
    entries.push({
      step: checkpoint.stepIndex,
      savedAt: checkpoint.savedAt,
      status: checkpoint.status,
      checkpoint,
    });
  });
  return entries.reverse();
}

/** The header from the newest facts and the newest event, not yet checked. */
export function headerFromEvent(facts: NonNullable<LogEvent['f']>, last: LogEvent): CheckpointHeader {
  return { ...facts, ...unpackHeader(last, facts), messageCount: last.n } as unknown as CheckpointHeader;
}

function noPrefix(): undefined {
  return undefined;
}

/* ── Writing ── */

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

/* ── Reading ── */

class LogFold {
  private facts: LogEvent['f'];
  private last: LogEvent | undefined;
  private messages: Message[] = [];
  private settledResults: readonly ToolResultPart[] = [];
  private heldInput: readonly Message[] = [];
  private inputIds: readonly string[] = [];
  private businessState: readonly JsonValue[] = [];

  constructor(private readonly messagesOf: (of: string) => readonly Message[] | undefined) {}

  apply(event: LogEvent): void {
    if (event.b !== undefined) this.startFrom(event.b);
    if (event.f !== undefined) this.facts = event.f;
    if (this.facts === undefined) throw new Error('The log does not begin with a base.');
    if (event.k !== undefined) this.keep(event.k);
    for (const item of event.m ?? [])
      this.messages.push(typeof item === 'string' ? this.takeEarlyResult(item) : item);
    this.settledResults =
      event.R ?? (event.r === undefined ? this.settledResults : [...this.settledResults, ...event.r]);
    this.heldInput = event.h ?? this.heldInput;
    this.inputIds = event.I ?? (event.i === undefined ? this.inputIds : [...this.inputIds, ...event.i]);
    this.businessState = event.w ?? this.businessState;
    this.last = event;
    if (this.messages.length !== event.n)
      throw new Error(`The log holds ${this.messages.length} messages where ${event.n} were saved.`);
  }

  state(): unknown {
    if (this.last === undefined) return null;
    return {
      ...this.facts,
      ...unpackHeader(this.last, this.facts),
      messages: this.messages.slice(),
      settledResults: this.settledResults,
      heldInput: this.heldInput,
      inputIds: this.inputIds,
      ...(this.businessState.length === 0 ? undefined : { businessState: this.businessState[0] }),
    };
  }

  /** By itself each, once: the lists of many states hold the same messages. */
  freezeMessages(): void {
    for (const message of this.messages) deepFreeze(message);
  }

  private startFrom(base: NonNullable<LogEvent['b']>): void {
    this.settledResults = [];
    this.heldInput = [];
    this.inputIds = [];
    this.businessState = [];
    if (base === 1) {
      this.messages = [];
      return;
    }
    const prefix = this.messagesOf(base.of);
    if (prefix === undefined || prefix.length < base.n)
      throw new Error(`The log stands on ${base.n} messages of "${base.of}", which are gone.`);
    this.messages = prefix.slice(0, base.n);
  }

  private keep(count: number): void {
    if (count > this.messages.length)
      throw new Error(`The log keeps ${count} of ${this.messages.length} messages.`);
    this.messages.length = count;
  }

  private takeEarlyResult(toolCallId: string): Message {
    const index = this.settledResults.findIndex((candidate) => candidate.toolCallId === toolCallId);
    const result = this.settledResults[index];
    if (result === undefined)
      throw new Error(`The log places a result of "${toolCallId}" that it does not hold.`);
    this.settledResults = this.settledResults.toSpliced(index, 1);
    return { role: 'tool', content: [result] };
  }
}

function unpackHeader(event: LogEvent, facts: LogEvent['f']): Record<string, unknown> {
  const approvals = (event.v?.approvals ?? []) as unknown as readonly CheckpointApproval[];
  const ids = event.z === 'awaiting-approval' ? undecidedIds(approvals) : [];
  return {
    startedToolCallIds: [] as readonly string[],
    approvals,
    delegatedInFlight: [] as readonly DelegatedInFlight[],
    ...(ids.length === 0 ? undefined : { approvalId: ids[0], approvalIds: ids }),
    ...event.v,
    status: event.z ?? 'in-progress',
    stepIndex: event.s,
    usage: unpackUsage(event.u, modelOf(facts)),
    savedAt: typeof event.t === 'number' ? new Date(event.t).toISOString() : event.t,
  };
}

function undecidedIds(approvals: readonly CheckpointApproval[]): string[] {
  return approvals.filter((approval) => approval.decision === undefined).map((approval) => approval.id);
}

/* ── Packing ── */

function packTime(iso: string): number | string {
  const epochMs = Date.parse(iso);
  return !Number.isNaN(epochMs) && new Date(epochMs).toISOString() === iso ? epochMs : iso;
}

/** The model of the run's fingerprint. */
function modelOf(facts: LogEvent['f']): string | undefined {
  return (facts?.fingerprint as { readonly model?: string } | undefined)?.model;
}
