/** Where time, chance and the process come from. */

export interface Clock {
  /** Epoch milliseconds; may jump. */
  wallMs(): number;
  /** Never goes back; stands still or not during a suspend, as the platform has it. */
  monotonicMs(): number;
  /** Returns what cancels it. `keepAlive: false` does not hold the process. */
  setTimer(
    callback: () => void,
    delayMs: number,
    options?: { readonly keepAlive?: boolean | undefined },
  ): () => void;
}
export interface Ids {
  /** At least 122 random bits, `[a-z0-9-]` only. */
  random(): string;
}
/** Who holds a lease. Fields that the platform does not tell are absent. */
export interface ProcessFacts {
  readonly instanceId: string;
  readonly host?: string;
  readonly bootId?: string;
  readonly pidNamespace?: string;
  readonly pid?: number;
  readonly processStartTicks?: number;
  readonly threadId?: number;
}
export interface Processes {
  own(): ProcessFacts;
  /** `true` only with proof; anything missing or unclear is `false`. */
  isGone(holder: ProcessFacts): boolean | Promise<boolean>;
}
/** Where time, chance and the process come from. Default: the platform's. Given in tests. */
export interface Ports {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly processes: Processes;
}
