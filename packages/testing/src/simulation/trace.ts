/** What happened, one line each, to read when a promise is broken and to compare two runs of one seed. */
import type { TrueTime } from './true-time.ts';

export class Trace {
  readonly lines: string[] = [];
  readonly #time: TrueTime;

  constructor(time: TrueTime) {
    this.#time = time;
  }

  note(who: string, what: string): void {
    this.lines.push(`${(this.#time.nowMs / 1_000).toFixed(3).padStart(9)} ${who.padEnd(4)} ${what}`);
  }
}
