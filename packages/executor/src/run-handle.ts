/** The handle of a run under way: its events from the first one on, its words, its result, and how to talk into it. */
import { SDKError, type AgentEvent, type AgentRun, type ExecutionResult } from '@lousho/contract';
import type { RunInput } from './run-input.ts';
import type { RunStop } from './run-stop.ts';

/** Starts the run at once and returns its handle. `execute` gets the sink for the run's events. */
export function startRunHandle(
  parts: { readonly input: RunInput; readonly stop: RunStop },
  execute: (sink: (event: AgentEvent) => void) => Promise<ExecutionResult>,
): AgentRun {
  const recorded = new RecordedEvents();
  const result = execute((event) => recorded.add(event)).finally(() => recorded.end());
  // Whoever reads only the events is not forced to catch the result as well.
  result.catch(() => undefined);
  let isIterated = false;
  return {
    result,
    textStream: { [Symbol.asyncIterator]: () => textOf(recorded, result) },
    steer: (input) => parts.input.steer(input),
    enqueue: (input) => parts.input.enqueue(input),
    abort: (reason) => parts.stop.abort(reason ?? new DOMException('The run was aborted.', 'AbortError')),
    [Symbol.asyncIterator]() {
      if (isIterated)
        throw new SDKError(
          'LOUSHO_RUN_ALREADY_ITERATED',
          recorded.runId === undefined ? {} : { runId: recorded.runId },
        );
      isIterated = true;
      return eventsOf(recorded, parts.stop, result);
    },
  };
}

/** Leaving the loop early aborts the run. */
async function* eventsOf(
  recorded: RecordedEvents,
  stop: RunStop,
  result: Promise<unknown>,
): AsyncGenerator<AgentEvent, void, undefined> {
  try {
    yield* recorded.read();
  } finally {
    if (!recorded.isComplete) stop.abort(new DOMException('The reader of the events left.', 'AbortError'));
  }
  await result;
}

async function* textOf(
  recorded: RecordedEvents,
  result: Promise<unknown>,
): AsyncGenerator<string, void, undefined> {
  for await (const event of recorded.read())
    if (event.type === 'text.delta' && event.subagentPath === undefined) yield event.text;
  await result;
}

class RecordedEvents {
  readonly #events: AgentEvent[] = [];
  #wake: (() => void)[] = [];
  #isComplete = false;

  get isComplete(): boolean {
    return this.#isComplete;
  }

  get runId(): string | undefined {
    return this.#events[0]?.runId;
  }

  add(event: AgentEvent): void {
    this.#events.push(event);
    this.#wakeReaders();
  }

  end(): void {
    this.#isComplete = true;
    this.#wakeReaders();
  }

  async *read(): AsyncGenerator<AgentEvent, void, undefined> {
    for (let next = 0; ;) {
      const event = this.#events[next];
      if (event !== undefined) {
        next += 1;
        yield event;
      } else if (this.#isComplete) {
        return;
      } else {
        await new Promise<void>((resolve) => this.#wake.push(resolve));
      }
    }
  }

  #wakeReaders(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
