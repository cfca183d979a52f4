/** One thing that a store does wrong, and the rules that see it. */
import type { Medium } from '../plain-store.ts';
import type { Plant } from '../subjects.ts';

export interface Flaw {
  /** What the store does, behind "a store that". */
  readonly name: string;
  /** Exactly these rules fail. */
  readonly breaks: readonly string[];
  readonly plant: Plant;
}

/** As many turns as an answer of a database takes: what others do meanwhile comes in between. */
export async function turns(count = 2): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** What a flaw remembers beside the store, for all handles on one storage. */
export function rememberPerStorage<Value>(): (medium: Medium) => Map<string, Value> {
  const memories = new WeakMap<Medium, Map<string, Value>>();
  return (medium) => {
    const memory = memories.get(medium) ?? new Map<string, Value>();
    memories.set(medium, memory);
    return memory;
  };
}
