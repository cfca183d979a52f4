/** Each step is announced once and ends once, whatever happens in between. */
import type { AgentEventMap, ModelFinishReason, ModelUsage } from '@lousho/contract';
import type { RunEvents } from './run-events.ts';

export class StepEvents {
  #step: number | undefined;
  #finishReason: ModelFinishReason = 'tool-calls';
  #usage: ModelUsage | undefined;

  constructor(readonly events: RunEvents) {}

  begin(step: number): void {
    if (this.#step !== undefined) return;
    this.#step = step;
    this.#finishReason = 'tool-calls';
    this.#usage = undefined;
    this.events.emit('step.start', { step });
  }

  responded(finishReason: ModelFinishReason, usage: ModelUsage): void {
    this.#finishReason = finishReason;
    this.#usage = usage;
  }

  end(reason: AgentEventMap['step.done']['finishReason'] = this.#finishReason): void {
    if (this.#step === undefined) return;
    this.events.emit('step.done', {
      step: this.#step,
      finishReason: reason,
      ...(this.#usage === undefined ? undefined : { usage: this.#usage }),
    });
    this.#step = undefined;
  }
}
