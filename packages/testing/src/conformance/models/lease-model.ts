/** Random leases and saves under them, by several owners over several handles, compared with one record an id. */
import type { Checkpoint, Lease } from '@lousho/contract';
import { assertEqual, fenceOf, isNothing } from '../expectations.ts';
import { Mismatch } from '../failure.ts';
import { beginRun, grow } from '../sample-runs.ts';
import type { SeededRandom } from '../seeded-random.ts';
import type { LeasingStore, World } from '../world.ts';
import type { Command } from './random-commands.ts';

const IDS = ['run-a', 'run-b'];
const OWNERS = ['ann', 'bob', 'eve'];
/** Owners keep the fences that they once had, as a stalled one does. */
interface Held {
  readonly owner: string;
  readonly fence: number | undefined;
  readonly expiresAtMs: number;
}

export async function leaseCommands(
  world: World,
  random: SeededRandom,
  seed: number,
): Promise<() => Command> {
  const handles = [await world.leases(), await world.leases(), await world.leases()];
  const models = IDS.map((id) => new LeaseModel(world, random, `s${seed}-${id}`));
  return () => {
    if (random.chance(0.15)) return waitCommand(world, random);
    const index = random.below(handles.length);
    return random.pick(models).next(handles[index] as LeasingStore, `h${index}`);
  };
}

/** Whole quarters of a period, so that many commands meet at the very moments where the answer changes. */
function waitCommand(world: World, random: SeededRandom): Command {
  const periods = random.pick([0.25, 0.5, 0.75, 1.25, 2.5]);
  return { text: `${periods} lease periods pass`, run: () => world.elapse(world.periodMs * periods) };
}

class LeaseModel {
  #held: Held | undefined;
  #highestFence = -Infinity;
  #stored: Checkpoint | undefined;
  readonly #fences = new Map<string, readonly number[]>();

  constructor(
    readonly world: World,
    readonly random: SeededRandom,
    readonly id: string,
  ) {}

  next(store: LeasingStore, handle: string): Command {
    // Half of the time the holder, so that something changes.
    const owner = (this.random.chance(0.4) ? this.#held?.owner : undefined) ?? this.random.pick(OWNERS);
    const fence = this.#fenceShownBy(owner);
    const args = `"${this.id}", "${owner}"${fence === undefined ? '' : `, fence ${fence}`}`;
    const choice = this.random.below(100);
    if (choice < 30)
      return { text: `${handle}.acquireLease(${args})`, run: () => this.#acquire(store, owner) };
    if (choice < 50)
      return { text: `${handle}.renewLease(${args})`, run: () => this.#renew(store, owner, fence) };
    if (choice < 62)
      return { text: `${handle}.releaseLease(${args})`, run: () => this.#release(store, owner, fence) };
    if (choice < 95)
      return { text: `${handle}.saveIfLeased(${args})`, run: () => this.#save(store, owner, fence) };
    return { text: `${handle}.delete("${this.id}")`, run: () => this.#delete(store) };
  }

  async #acquire(store: LeasingStore, owner: string): Promise<void> {
    const lease = await this.world.done(store.acquireLease(this.id, owner, this.world.periodMs));
    const allowed = this.#mayHave(owner);
    const isGranted = lease !== false;
    if (allowed !== 'either' && isGranted !== (allowed === 'yes'))
      throw new Mismatch(allowed === 'yes' ? 'a lease' : false, lease, this.#holderNow());
    if (lease !== false) this.#take(owner, lease);
  }

  /** Mostly the fence that the owner was given last, sometimes the one before, as an execution that stalled has it, and sometimes none. */
  #fenceShownBy(owner: string): number | undefined {
    const fences = this.#fences.get(owner) ?? [];
    const newest = this.random.chance(0.75) ? -1 : -2;
    return this.random.chance(0.65) ? fences.at(newest) : undefined;
  }

  /** Between the expiry and a period later it depends on whether owners share a clock. */
  #mayHave(owner: string): 'yes' | 'no' | 'either' {
    const held = this.#held;
    if (held === undefined || held.owner === owner) return 'yes';
    const sinceExpiryMs = this.world.nowMs() - held.expiresAtMs;
    if (sinceExpiryMs < 0) return 'no';
    return sinceExpiryMs >= this.world.periodMs ? 'yes' : 'either';
  }

  #take(owner: string, lease: Lease | true): void {
    const fence = fenceOf(lease);
    const isOwn = this.#held?.owner === owner;
    if (isOwn) assertEqual(fence, this.#held?.fence, 'The same owner asked again: the fence stays.');
    else if (fence !== undefined) {
      if (fence <= this.#highestFence)
        throw new Mismatch(`a fence above ${this.#highestFence}`, fence, 'Fences grow.');
      this.#highestFence = fence;
    }
    if (fence !== undefined && !isOwn) this.#fences.set(owner, [...(this.#fences.get(owner) ?? []), fence]);
    this.#held = { owner, fence, expiresAtMs: this.world.nowMs() + this.world.periodMs };
  }

  async #renew(store: LeasingStore, owner: string, fence: number | undefined): Promise<void> {
    const renewed = await this.world.done(store.renewLease(this.id, owner, this.world.periodMs, fence));
    const held = this.#heldBy(owner, fence);
    assertEqual(renewed, held !== undefined, this.#holderNow());
    if (held !== undefined) this.#held = { ...held, expiresAtMs: this.world.nowMs() + this.world.periodMs };
  }

  async #release(store: LeasingStore, owner: string, fence: number | undefined): Promise<void> {
    await this.world.done(store.releaseLease(this.id, owner, fence));
    if (this.#heldBy(owner, fence) !== undefined) this.#held = undefined;
  }

  async #save(store: LeasingStore, owner: string, fence: number | undefined): Promise<void> {
    const now = this.world.now();
    const state =
      this.#stored?.status === 'in-progress' && this.#stored.messages.length < 12
        ? grow(this.#stored, now)
        : beginRun(now, { runId: `run-of-${owner}` });
    const saved = await this.world.done(store.saveIfLeased(this.id, state, owner, fence));
    const isHeld = this.#heldBy(owner, fence) !== undefined;
    assertEqual(saved, isHeld, this.#holderNow());
    if (isHeld) this.#stored = state;
    const loaded = await this.world.done(store.load(this.id));
    assertEqual(
      isNothing(loaded) ? null : loaded,
      this.#stored ?? null,
      'The checkpoint is not that of the last save by a holder.',
    );
  }

  async #delete(store: LeasingStore): Promise<void> {
    await this.world.done(store.delete(this.id));
    this.#held = undefined;
    this.#stored = undefined;
  }

  #heldBy(owner: string, fence: number | undefined): Held | undefined {
    const held = this.#held;
    if (held?.owner !== owner) return undefined;
    return fence === undefined || fence === held.fence ? held : undefined;
  }

  #holderNow(): string {
    if (this.#held === undefined) return 'Nobody held the lease.';
    const { owner, fence, expiresAtMs } = this.#held;
    const inMs = expiresAtMs - this.world.nowMs();
    return `"${owner}" held it with the fence ${fence ?? '(none)'}; it expires${inMs < 0 ? 'd' : ''} ${Math.abs(inMs)} ms ${inMs < 0 ? 'ago' : 'from now'}.`;
  }
}
