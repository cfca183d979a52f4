/** Events → the states that they were made from: the newest, those before it, or the header alone. Nothing is checked here. */
import type {
  Checkpoint,
  CheckpointApproval,
  CheckpointHeader,
  CheckpointHistoryEntry,
  DelegatedInFlight,
} from './checkpoint.ts';
import { undecidedIds, type LogEvent } from './checkpoint-log.ts';
import { deepFreeze } from './freeze.ts';
import { copyFields, type JsonValue } from './json.ts';
import type { Message, ToolResultPart } from './messages.ts';
import { unpackUsage } from './packed-usage.ts';

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
  const header = unpackHeader(last, facts);
  header.messageCount = last.n;
  return header as unknown as CheckpointHeader;
}

function noPrefix(): undefined {
  return undefined;
}

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
    const state = unpackHeader(this.last, this.facts);
    state.messages = this.messages.slice();
    state.settledResults = this.settledResults;
    state.heldInput = this.heldInput;
    state.inputIds = this.inputIds;
    if (this.businessState.length > 0) state.businessState = this.businessState[0];
    return state;
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

/** Everything but the content, in an object of its own. A list of runs makes thousands of these. */
function unpackHeader(event: LogEvent, facts: LogEvent['f']): Record<string, unknown> {
  const approvals = (event.v?.approvals ?? []) as unknown as readonly CheckpointApproval[];
  const header: Record<string, unknown> = {
    status: event.z ?? 'in-progress',
    stepIndex: event.s,
    usage: unpackUsage(event.u, modelOf(facts)),
    savedAt: typeof event.t === 'number' ? new Date(event.t).toISOString() : event.t,
    startedToolCallIds: [] as readonly string[],
    approvals,
    delegatedInFlight: [] as readonly DelegatedInFlight[],
  };
  const ids = event.z === 'awaiting-approval' ? undecidedIds(approvals) : [];
  if (ids.length > 0) {
    header.approvalId = ids[0];
    header.approvalIds = ids;
  }
  if (facts !== undefined) copyFields(facts, header);
  if (event.v !== undefined) copyFields(event.v, header);
  return header;
}

/** The model of the run's fingerprint. */
function modelOf(facts: LogEvent['f']): string | undefined {
  return (facts?.fingerprint as { readonly model?: string } | undefined)?.model;
}
