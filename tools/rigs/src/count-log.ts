/** What counting processes were told (`workers/counter-worker.mjs`), and what must be true of it whatever happened to them. */

export interface CountLine {
  readonly atMs: number;
  /** Which of the counters: the kind of its store. */
  readonly counter: string;
  readonly owner: string;
  readonly kind: 'taken' | 'asking' | 'found' | 'acknowledged' | 'refused';
  readonly step?: number;
  readonly fence?: number;
}

/** A sentence for each broken promise. `final`: where the counter is in the end; `Infinity` while it goes on. */
export function findCountErrors(lines: readonly CountLine[], final: number): readonly string[] {
  const errors: string[] = [];
  const tellers = new Map<number, string>();
  const askedAfter = new Map<string, number>();
  const fences = new Map<number, string>();
  let highest = 0;
  for (const { kind, owner, step = 0, fence } of lines) {
    switch (kind) {
      case 'taken': {
        const before = fences.get(fence ?? 0);
        if (before !== undefined && before !== owner)
          errors.push(`${before} and ${owner} had fence ${fence}`);
        fences.set(fence ?? 0, owner);
        break;
      }
      case 'asking':
        askedAfter.set(owner, highest);
        break;
      case 'found':
        // Everything that was acknowledged before it asked is there.
        if (step < (askedAfter.get(owner) ?? 0))
          errors.push(`${owner} found ${step} after ${askedAfter.get(owner)} was acknowledged`);
        break;
      case 'acknowledged': {
        const other = tellers.get(step);
        if (other !== undefined)
          errors.push(`${other} and ${owner} were both told that they counted to ${step}`);
        tellers.set(step, owner);
        highest = Math.max(highest, step);
        break;
      }
      case 'refused':
        break;
    }
  }
  if (final < highest) errors.push(`it ends at ${final}, and ${highest} was acknowledged`);
  return errors;
}
