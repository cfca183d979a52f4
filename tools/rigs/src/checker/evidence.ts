/** What a rig left behind, and the questions that every rule asks of it. */
import type { Checkpoint } from '@lousho/contract';
import type { LineOf, LogLine } from '../effect-log.ts';

export interface Evidence {
  /** In the order in which they were written. */
  readonly log: readonly LogLine[];
  /** What other handles read from the store, each when the log had so many lines. */
  readonly looks: readonly Look[];
  /** By session, when everything was over. */
  readonly finals: ReadonlyMap<string, Checkpoint | null>;
  readonly leaseTtlMs: number;
}
export interface Look {
  readonly session: string;
  readonly logLength: number;
  readonly checkpoint: Checkpoint | null;
}

export interface Violation {
  readonly rule: string;
  readonly text: string;
}
/** Yields a sentence for each violation. */
export type Rule = (facts: Facts) => Iterable<string>;

export type Indexed<Line> = Line & { readonly index: number };
type EffectLine = LineOf<'model.asked' | 'tool.started'>;
type LeasedLine = Extract<LogLine, { readonly fence: number }>;

export class Facts {
  readonly evidence: Evidence;
  readonly lines: readonly Indexed<LogLine>[];
  readonly #byKind: Map<string, Indexed<LogLine>[]>;
  readonly #goneAt = new Map<string, number>();
  readonly #endedBadlyAt = new Map<string, number>();
  readonly #takings: Map<string, Indexed<LineOf<'lease.taken'>>[]>;

  constructor(evidence: Evidence) {
    this.evidence = evidence;
    this.lines = evidence.log.map((line, index) => ({ ...line, index }));
    this.#byKind = groupBy(this.lines, ({ kind }) => kind);
    for (const kind of ['worker.killed', 'worker.left'] as const)
      for (const { worker, index } of this.all(kind)) this.#goneAt.set(worker, index);
    for (const { op, index, outcome } of this.all('op.ended'))
      if (outcome.type === 'rejected') this.#endedBadlyAt.set(op, index);
    this.#takings = groupBy(this.all('lease.taken'), ({ session }) => session);
    for (const takings of this.#takings.values()) takings.sort((a, b) => a.fence - b.fence);
  }

  all<Kind extends LogLine['kind']>(kind: Kind): readonly Indexed<LineOf<Kind>>[] {
    return (this.#byKind.get(kind) ?? []) as unknown as readonly Indexed<LineOf<Kind>>[];
  }

  /** By session, each by fence. */
  get allTakings(): ReadonlyMap<string, readonly Indexed<LineOf<'lease.taken'>>[]> {
    return this.#takings;
  }

  /** By fence, lowest first. */
  takings(session: string): readonly Indexed<LineOf<'lease.taken'>>[] {
    return this.#takings.get(session) ?? [];
  }

  /** Where somebody else got the session of this line's lease, if somebody did. */
  takenOver({ session, fence }: LeasedLine): Indexed<LineOf<'lease.taken'>> | undefined {
    return this.takings(session).find((taking) => taking.fence > fence);
  }

  goneAt(worker: string): number {
    return this.#goneAt.get(worker) ?? Infinity;
  }

  /** The first moment at which the execution behind this line could no longer record anything: killed, failed, or taken over. */
  interruptedAt(line: LeasedLine): number {
    return Math.min(
      this.goneAt(line.worker),
      this.#endedBadlyAt.get(line.op) ?? Infinity,
      this.takenOver(line)?.index ?? Infinity,
    );
  }
}

/**
 * Whether an effect was begun with `known` behind it. A process that is stopped in the middle of a turn ends that turn when it is
 * continued, whatever happened meanwhile; what it begins in later turns it begins knowing that it slept.
 */
export function beganAfter(effect: Indexed<EffectLine>, known: Indexed<LogLine>): boolean {
  return effect.worker === known.worker ? known.index < effect.index : known.at < effect.turnAt;
}

/** An operation at a session may execute several turns. */
export function executionOf({ op, session }: { readonly op: string; readonly session: string }): string {
  return `${op} ${session}`;
}

export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
