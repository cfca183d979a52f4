/** Random saves, loads, deletes, histories and lists over several handles, compared with a few maps. */
import {
  compareSaves,
  checkpointHeader,
  type AgentStore,
  type AwaitingApprovalCheckpoint,
  type Checkpoint,
  type CheckpointStatus,
  type InProgressCheckpoint,
} from '@lousho/contract';
import { assertEqual, isNothing } from '../expectations.ts';
import { Mismatch } from '../failure.ts';
import { beginRun, finishRun, grow, pauseRun } from '../sample-runs.ts';
import type { SeededRandom } from '../seeded-random.ts';
import type { World } from '../world.ts';
import type { Command } from './random-commands.ts';

const IDS = ['run-a', 'run-b', 'run-b.turn-1'];
const STATUSES: readonly CheckpointStatus[] = ['in-progress', 'awaiting-approval', 'finished'];
/** A transcript this long makes the commands slow and shows nothing new. */
const LONGEST_TRANSCRIPT = 12;
const MOST_ENTRIES_ASKED = 5;

export async function checkpointCommands(
  world: World,
  random: SeededRandom,
  seed: number,
): Promise<() => Command> {
  const model = new CheckpointModel(world, random, seed);
  await model.open();
  return () => model.next();
}

class CheckpointModel {
  readonly #latest = new Map<string, Checkpoint>();
  /** Newest first. */
  readonly #histories = new Map<string, readonly Checkpoint[]>();
  readonly #handles: AgentStore[] = [];
  #runs = 0;
  #canReopen = false;

  constructor(
    readonly world: World,
    readonly random: SeededRandom,
    readonly seed: number,
  ) {}

  async open(): Promise<void> {
    while (this.#handles.length < 3) this.#handles.push(await this.world.open());
    this.#canReopen = this.#handles[0] !== this.#handles[1] && this.#handles[0]?.close !== undefined;
  }

  next(): Command {
    const { random } = this;
    const index = random.below(this.#handles.length);
    // Ids of another seed stay in the storage: each seed has its own.
    const id = `s${this.seed}-${random.pick(IDS)}`;
    const choice = random.below(100);
    if (choice < 45) return this.#save(index, id);
    if (choice < 65) return this.#load(index, id);
    if (choice < 75) return this.#delete(index, id, random.chance(0.4));
    if (choice < 87) return this.#history(index, id, random.below(MOST_ENTRIES_ASKED + 1));
    if (choice < 98)
      return this.#list(
        index,
        STATUSES.filter(() => random.chance(0.6)),
      );
    return this.#reopen(index);
  }

  #save(index: number, id: string): Command {
    const checkpoint = this.#nextState(this.#latest.get(id));
    const { status, stepIndex, messages } = checkpoint;
    return {
      text: `h${index}.save("${id}", ${status}, step ${stepIndex}, ${messages.length} messages)`,
      run: async () => {
        await this.#checkpoints(index).save(id, checkpoint);
        this.#latest.set(id, checkpoint);
        this.#histories.set(id, [checkpoint, ...(this.#histories.get(id) ?? [])]);
      },
    };
  }

  /** What a run may do next; now and then a new run, an edit, or the same once more. */
  #nextState(before: Checkpoint | undefined): Checkpoint {
    const { random, world } = this;
    const now = world.now(-1_000 * random.below(60));
    const isLong = (before?.messages.length ?? 0) > LONGEST_TRANSCRIPT;
    if (before === undefined || isLong || before.status === 'finished' || random.chance(0.08))
      return beginRun(now, { runId: `run-${(this.#runs += 1)}` });
    if (random.chance(0.08)) return before;
    if (before.status === 'awaiting-approval') return decided(before, now);
    if (random.chance(0.1))
      return { ...before, messages: before.messages.with(1, { role: 'user', content: now }), savedAt: now };
    if (random.chance(0.1))
      return {
        ...before,
        businessState: { edited: now },
        heldInput: [{ role: 'user', content: 'Wait.' }],
        savedAt: now,
      };
    if (random.chance(0.15)) return pauseRun(before, `${before.runId}.apr-run00001-1-0`, now);
    if (random.chance(0.15)) return finishRun(before, now);
    return grow(before, now);
  }

  #load(index: number, id: string): Command {
    return {
      text: `h${index}.load("${id}")`,
      run: async () => {
        const loaded = await this.world.done(this.#checkpoints(index).load(id));
        assertEqual(
          isNothing(loaded) ? null : loaded,
          this.#latest.get(id) ?? null,
          'This is not what was saved last.',
        );
      },
    };
  }

  #delete(index: number, id: string, keepHistory: boolean): Command {
    return {
      text: `h${index}.delete("${id}", keepHistory: ${keepHistory})`,
      run: async () => {
        await this.#checkpoints(index).delete(id, { keepHistory });
        this.#latest.delete(id);
        if (!keepHistory) this.#histories.delete(id);
      },
    };
  }

  #history(index: number, id: string, limit: number): Command {
    const store = this.#checkpoints(index);
    if (!this.world.claims.history || store.history === undefined) return this.#load(index, id);
    return {
      text: `h${index}.history("${id}", limit ${limit})`,
      run: async () => {
        const entries = (await this.world.done(store.history?.(id, { limit }))).map(
          ({ checkpoint }) => checkpoint,
        );
        const expected = (this.#histories.get(id) ?? []).slice(0, limit);
        // What the store may have dropped by its own limit is the end.
        const kept = this.world.subject.historyLimit ?? 1;
        if (entries.length < Math.min(kept, expected.length))
          throw new Mismatch(expected, entries, 'Saves are missing.');
        assertEqual(entries, expected.slice(0, entries.length), 'These are not the newest saves of the id.');
        assertEqual(entries.length <= limit, true, 'More were given than asked for.');
      },
    };
  }

  #list(index: number, status: readonly CheckpointStatus[]): Command {
    const store = this.#checkpoints(index);
    if (!this.world.claims.list || store.list === undefined) return this.#load(index, IDS[0] ?? '');
    return {
      text: `h${index}.list(${status.join(', ')})`,
      run: async () => {
        const mine = ({ sessionId }: { readonly sessionId: string }): boolean =>
          sessionId.startsWith(`s${this.seed}-`);
        const expected = [...this.#latest]
          .filter(([, checkpoint]) => status.includes(checkpoint.status))
          .sort(([idA, a], [idB, b]) => compareSaves(a.savedAt, idA, b.savedAt, idB));
        const hint = 'The list is not that of the runs that are stored.';
        assertEqual(
          (await this.world.done(store.list?.({ status }))).filter(mine),
          expected.map(([sessionId, checkpoint]) => ({ sessionId, status: checkpoint.status, checkpoint })),
          hint,
        );
        if (store.listHeaders === undefined) return;
        assertEqual(
          (await this.world.done(store.listHeaders({ status }))).filter(mine),
          expected.map(([sessionId, checkpoint]) => {
            return { sessionId, status: checkpoint.status, header: checkpointHeader(checkpoint) };
          }),
          `${hint} These were headers.`,
        );
      },
    };
  }

  /** Another process takes the place of one that ends. */
  #reopen(index: number): Command {
    return {
      text: this.#canReopen ? `h${index} is closed and opened again` : `h${index} stays`,
      run: async () => {
        const store = this.#handles[index];
        if (!this.#canReopen || store === undefined) return;
        await this.world.end(store);
        this.#handles[index] = await this.world.open();
      },
    };
  }

  #checkpoints(index: number) {
    const store = this.#handles[index];
    if (store === undefined) throw new Error('Invariant: there are three handles.');
    return this.world.checkpointsOf(store);
  }
}

function decided(
  before: InProgressCheckpoint | AwaitingApprovalCheckpoint,
  savedAt: string,
): InProgressCheckpoint {
  const decision = { approved: true, source: 'person', by: 'ann', decidedAt: savedAt } as const;
  const { approvalId: _id, approvalIds: _ids, ...rest } = { approvalId: '', approvalIds: [], ...before };
  return {
    ...rest,
    status: 'in-progress',
    approvals: before.approvals.map((approval) => ({ ...approval, decision })),
    startedToolCallIds: before.approvals.map(({ toolCallId }) => toolCallId),
    savedAt,
  };
}
