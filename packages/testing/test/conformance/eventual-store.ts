/**
 * The correct store behind a slow network, as Workers KV is: a handle sees its own writes at once, and those of others a minute later.
 * Each handle has a copy of everything. What a call changed in it is sent to all others; of two writes of one record the later one stands.
 */
import type { StoreClaims } from '@lousho/contract';
import type { StoreSubject } from '../../src/conformance.ts';
import type { ManualClock } from '../../src/index.ts';
import { damage, HISTORY_LIMIT, Medium, plainClaims, plainStore, type Handle } from './plain-store.ts';
import { withOverrides, type Plant } from './subjects.ts';

const VISIBLE_AFTER_MS = 60_000;
const eventualClaims: StoreClaims = { ...plainClaims, leases: 'best-effort', consistency: 'eventual' };
const RECORDS = ['latest', 'histories', 'leases', 'approvals', 'sessions'] as const;
type RecordKind = (typeof RECORDS)[number];

interface Write {
  readonly number: number;
  readonly kind: RecordKind;
  readonly id: string;
  /** `undefined`: deleted. */
  readonly value: unknown;
  readonly by: Replica;
  readonly visibleAtMs: number;
}

/** All writes in their order. */
class Network {
  readonly writes: Write[] = [];

  constructor(readonly clock: ManualClock) {}
}

/** What one handle sees. */
class Replica {
  readonly medium: Medium;
  #received = 0;
  readonly #newest = new Map<string, number>();

  constructor(
    readonly network: Network,
    readonly order: 'in order' | 'newest first',
  ) {
    this.medium = new Medium(network.clock);
    // What was written before this handle was opened comes to it like everything else.
    this.receive();
  }

  receive(): void {
    const { writes, clock } = this.network;
    const due: Write[] = [];
    while ((writes[this.#received]?.visibleAtMs ?? Infinity) <= clock.monotonicMs())
      due.push(writes[this.#received++] as Write);
    if (this.order === 'newest first') due.reverse();
    for (const write of due) {
      const isStale = (this.#newest.get(`${write.kind} ${write.id}`) ?? -1) > write.number;
      if (write.by !== this && (!isStale || this.order === 'newest first')) this.#apply(write);
    }
  }

  /** Runs a call of the correct store on the copy, and sends what it changed. */
  async call(perform: () => unknown): Promise<unknown> {
    this.receive();
    const before = RECORDS.map((kind) => new Map<string, unknown>(this.medium[kind]));
    try {
      return await perform();
    } finally {
      for (const [index, kind] of RECORDS.entries()) this.#send(kind, before[index] ?? new Map());
    }
  }

  #send(kind: RecordKind, before: ReadonlyMap<string, unknown>): void {
    const { writes, clock } = this.network;
    const after = this.medium[kind] as ReadonlyMap<string, unknown>;
    for (const id of new Set([...before.keys(), ...after.keys()])) {
      if (before.get(id) === after.get(id)) continue;
      const write: Write = {
        ...{ number: writes.length, kind, id, value: after.get(id), by: this },
        visibleAtMs: clock.monotonicMs() + VISIBLE_AFTER_MS,
      };
      writes.push(write);
      this.#newest.set(`${kind} ${id}`, write.number);
    }
  }

  #apply({ number, kind, id, value }: Write): void {
    const records = this.medium[kind] as Map<string, unknown>;
    if (value === undefined) records.delete(id);
    else records.set(id, value);
    this.#newest.set(`${kind} ${id}`, number);
  }
}

export function eventualSubject(
  name: string,
  plant: Plant = () => ({}),
  order: Replica['order'] = 'in order',
): StoreSubject {
  return {
    name,
    claims: eventualClaims,
    historyLimit: HISTORY_LIMIT,
    async createStorage(clock) {
      const network = new Network(clock);
      const replicas: Replica[] = [];
      const damageAll = (kind: 'latest' | 'approvals' | 'sessions', id: string): void => {
        for (const { medium } of replicas) if (medium[kind].has(id)) damage(medium[kind], id);
        for (const [index, write] of network.writes.entries())
          if (write.kind === kind && write.id === id) network.writes[index] = { ...write, value: '#damaged' };
      };
      return {
        open: async () => {
          const replica = new Replica(network, order);
          const right = plainStore(replica.medium);
          const checkpoints = { ...right.checkpoints, claims: eventualClaims };
          const planted = withOverrides(
            { ...right, checkpoints },
            plant({ ...right, checkpoints }, replica.medium, replicas.length),
          );
          replicas.push(replica);
          return overNetwork(planted as Handle, replica);
        },
        destroy: async () => undefined,
        corrupt: async (id) => damageAll('latest', id),
        corruptApproval: async (id) => damageAll('approvals', id),
        corruptSession: async (id) => damageAll('sessions', id),
      };
    },
  };
}

/** Every method of every part, on the replica. */
function overNetwork<Part extends object>(part: Part, replica: Replica): Part {
  const copy: Record<string | symbol, unknown> = {};
  for (const key of Reflect.ownKeys(part)) {
    const member: unknown = Reflect.get(part, key);
    if (typeof member === 'function')
      copy[key] = (...args: unknown[]) => replica.call(() => Reflect.apply(member, part, args));
    else
      copy[key] = ['checkpoints', 'approvals', 'sessions'].includes(String(key))
        ? overNetwork(member as object, replica)
        : member;
  }
  return copy as Part;
}
