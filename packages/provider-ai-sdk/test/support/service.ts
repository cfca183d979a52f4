/** One wire format: what its service says in the two steps of the run that all tests make, and where a request shows it again. */
import type { Answer, WireBody, WireEvent } from './wire-server.ts';

export interface Service {
  readonly path: string;
  /** Calls `weather` with a city and `now` without arguments, after reasoning that the service wants back. */
  readonly firstStep: Answer;
  /** The answer. */
  readonly secondStep: Answer;
  /** The events of the first step, for tests that break them off. */
  readonly firstEvents: readonly WireEvent[];
  /** How many of them have come when a part of the text is there. */
  readonly eventsUntilText: number;
  /** What a request must carry of the first step, in order. */
  readonly itemsOfFirstStep: readonly unknown[];
  /** What it does carry. */
  readonly itemsIn: (body: WireBody) => readonly unknown[];
  /** The results of the calls, in order. */
  readonly resultsIn: (body: WireBody) => readonly { readonly id: unknown; readonly content: unknown }[];
}

export const REASONING = 'The user wants the weather.';
export const TEXT = 'Let me check.';
export const ANSWER = 'It is 7 degrees in Oslo.';
export const ARGS = { city: 'Oslo' };
