/** The events of one run: numbered without gaps, for the listener and for whoever reads the handle. */
import type {
  AgentEvent,
  AgentEventBase,
  AgentEventMap,
  AgentEventType,
  Clock,
  ErrorEvent,
} from '@lousho/contract';
import { storedError } from '@lousho/contract';
import { outsideRuns } from './reentrancy.ts';

export interface EventSink {
  (event: AgentEvent): void;
}

/** Where the events of a sub-agent come from. */
type TaskEvents = Required<Pick<AgentEventBase, 'subagentPath' | 'taskToolCallId'>> &
  Pick<AgentEventBase, 'sessionId'>;

export class RunEvents {
  readonly #numbers: { next: number };
  readonly #task: TaskEvents | undefined;
  #run: { readonly runId: string; readonly sessionId?: string } = { runId: '' };
  readonly #sinks: readonly EventSink[];
  readonly #clock: Clock;

  constructor(
    sinks: readonly EventSink[],
    clock: Clock,
    inside: { readonly numbers: { next: number }; readonly task?: TaskEvents } = { numbers: { next: 0 } },
  ) {
    this.#sinks = sinks;
    this.#clock = clock;
    this.#numbers = inside.numbers;
    this.#task = inside.task;
  }

  /** Those of a sub-agent: numbered with ours, heard by whoever hears ours, in our session. */
  ofTask(subagentPath: readonly string[], taskToolCallId: string): RunEvents {
    const { sessionId } = this.#run;
    const task = { subagentPath, taskToolCallId, ...(sessionId === undefined ? undefined : { sessionId }) };
    return new RunEvents(this.#sinks, this.#clock, { numbers: this.#numbers, task });
  }

  /** From here on events belong to this run. */
  belongTo(runId: string, sessionId: string | undefined): void {
    if (this.#task !== undefined) this.#run = { ...this.#task, runId };
    else this.#run = sessionId === undefined ? { runId } : { runId, sessionId };
  }

  get haveBegun(): boolean {
    return this.#numbers.next > 0;
  }

  emit<T extends AgentEventType>(
    type: T,
    payload: AgentEventMap[T] & Pick<AgentEventBase, 'subagentPath'>,
  ): void {
    if (this.#sinks.length === 0) return;
    const timestamp = new Date(this.#clock.wallMs()).toISOString();
    const event = Object.freeze({
      v: 1,
      type,
      ...this.#run,
      seq: this.#numbers.next,
      timestamp,
      ...payload,
    }) as unknown as AgentEvent;
    this.#numbers.next += 1;
    for (const sink of this.#sinks) deliver(sink, event);
  }
}

/** A listener that throws or rejects changes nothing, and one that sends to the run waits in line like anybody. */
function deliver(sink: EventSink, event: AgentEvent): void {
  try {
    const returned: unknown = outsideRuns(() => sink(event) as unknown);
    // An async function fits the type of a listener; left alone, its rejection would end the process.
    if (returned instanceof Promise) returned.catch(complain);
  } catch (error) {
    complain(error);
  }
}

function complain(error: unknown): void {
  console.error('lousho: an event listener threw; the run goes on.', error);
}

export function errorEvent(error: unknown): ErrorEvent {
  const { name, message, code } = storedError(error);
  return { name, message, ...(code === undefined ? undefined : { code }) };
}
