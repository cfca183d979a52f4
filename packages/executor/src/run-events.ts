/** The events of one run: numbered without gaps, for the listener and for whoever reads the handle. */
import type { AgentEvent, AgentEventMap, AgentEventType, Clock, ErrorEvent } from '@lousho/contract';
import { storedError } from '@lousho/contract';
import { outsideRuns } from './reentrancy.ts';

export interface EventSink {
  (event: AgentEvent): void;
}

export class RunEvents {
  #seq = 0;
  #run: { readonly runId: string; readonly sessionId?: string } = { runId: '' };
  readonly #sinks: readonly EventSink[];
  readonly #clock: Clock;

  constructor(sinks: readonly EventSink[], clock: Clock) {
    this.#sinks = sinks;
    this.#clock = clock;
  }

  /** From here on events belong to this run. */
  belongTo(runId: string, sessionId: string | undefined): void {
    this.#run = sessionId === undefined ? { runId } : { runId, sessionId };
  }

  get haveBegun(): boolean {
    return this.#seq > 0;
  }

  emit<T extends AgentEventType>(type: T, payload: AgentEventMap[T]): void {
    if (this.#sinks.length === 0) return;
    const timestamp = new Date(this.#clock.wallMs()).toISOString();
    const event = Object.freeze({
      v: 1,
      type,
      ...this.#run,
      seq: this.#seq,
      timestamp,
      ...payload,
    }) as unknown as AgentEvent;
    this.#seq += 1;
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
