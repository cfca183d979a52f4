/** Random approvals and sessions over several handles, compared with one map each. */
import {
  compareSaves,
  type ApprovalRecord,
  type ApprovalStore,
  type SessionRecord,
  type SessionStore,
} from '@lousho/contract';
import { assertEqual, isNothing } from '../expectations.ts';
import { approvalRecord, sessionRecord } from '../sample-runs.ts';
import type { SeededRandom } from '../seeded-random.ts';
import type { World } from '../world.ts';
import type { Command } from './random-commands.ts';

export async function approvalCommands(
  world: World,
  random: SeededRandom,
  seed: number,
): Promise<() => Command> {
  const handles = [await world.approvals(), await world.approvals(), await world.approvals()];
  const records = new Map<string, ApprovalRecord>();
  const mine = ({ id }: ApprovalRecord): boolean => id.startsWith(`s${seed}-`);
  const listed = (sessionId: string | undefined): ApprovalRecord[] =>
    [...records.values()]
      .filter((record) => sessionId === undefined || record.sessionId === sessionId)
      .sort((a, b) => compareSaves(a.createdAt, a.id, b.createdAt, b.id));

  return () => {
    const index = random.below(handles.length);
    const store = handles[index] as ApprovalStore;
    const id = `s${seed}-${random.pick(['a', 'b', 'c', 'd'])}`;
    const sessionId = random.pick(['chat-1', 'chat-2']);
    const choice = random.below(100);
    if (choice < 40) {
      const { sessionId: _session, ...without } = approvalRecord(id, world.now(-1_000 * random.below(5)), {
        args: { amount: random.below(1_000) },
      });
      const record: ApprovalRecord = random.chance(0.7) ? { ...without, sessionId } : without;
      return {
        text: `h${index}.save("${id}", ${record.sessionId ?? 'no session'}, created ${record.createdAt})`,
        run: async () => {
          await world.done(store.save(record));
          records.set(id, record);
        },
      };
    }
    if (choice < 60)
      return {
        text: `h${index}.load("${id}")`,
        run: async () => {
          const loaded = await world.done(store.load(id));
          assertEqual(
            isNothing(loaded) ? null : loaded,
            records.get(id) ?? null,
            'This is not the record that was saved last.',
          );
        },
      };
    if (choice < 80)
      return {
        text: `h${index}.delete("${id}")`,
        run: async () =>
          assertEqual(
            await world.done(store.delete(id)),
            records.delete(id),
            'true when it removed one, else false.',
          ),
      };
    const filter = random.chance(0.5) ? sessionId : undefined;
    return {
      text: `h${index}.list(${filter ?? ''})`,
      run: async () => {
        const entries = await world.done(store.list(filter === undefined ? {} : { sessionId: filter }));
        assertEqual(
          entries.filter(mine),
          listed(filter),
          'The list is not that of the records that are stored.',
        );
      },
    };
  };
}

export async function sessionCommands(
  world: World,
  random: SeededRandom,
  seed: number,
): Promise<() => Command> {
  const handles = [await world.sessions(), await world.sessions(), await world.sessions()];
  const records = new Map<string, SessionRecord>();

  return () => {
    const index = random.below(handles.length);
    const store = handles[index] as SessionStore;
    const id = `s${seed}-${random.pick(['a', 'b', 'c'])}`;
    const choice = random.below(100);
    if (choice < 50) return commit(world, random, { index, store, id, records });
    if (choice < 75)
      return {
        text: `h${index}.load("${id}")`,
        run: async () => {
          const loaded = await world.done(store.load(id));
          assertEqual(
            isNothing(loaded) ? null : loaded,
            records.get(id) ?? null,
            'This is not the record that was saved last.',
          );
        },
      };
    if (choice < 85)
      return {
        text: `h${index}.delete("${id}")`,
        run: async () => {
          await world.done(store.delete(id));
          records.delete(id);
        },
      };
    return {
      text: `h${index}.list()`,
      run: async () => {
        if (store.list === undefined) return;
        const ids = (await world.done(store.list())).filter((listed) => listed.startsWith(`s${seed}-`));
        assertEqual(
          [...ids].sort(),
          [...records.keys()].sort(),
          'The list is not that of the sessions that are stored.',
        );
      },
    };
  };
}

interface CommitTarget {
  readonly index: number;
  readonly store: SessionStore;
  readonly id: string;
  readonly records: Map<string, SessionRecord>;
}

/** Mostly with the revision that is stored, sometimes with one before or after it. */
function commit(world: World, random: SeededRandom, { index, store, id, records }: CommitTarget): Command {
  const before = records.get(id);
  const revision = before?.revision ?? 0;
  const expected = Math.max(0, revision + random.pick([0, 0, 0, 0, -1, 1]));
  const more = { role: 'user', content: `Message ${random.below(1_000)}` } as const;
  const base = sessionRecord(id, world.now());
  const messages = before === undefined || random.chance(0.15) ? base.messages : [...before.messages, more];
  const record = { ...base, turn: random.below(100), messages: messages.slice(-20) };
  return {
    text: `h${index}.saveIfRevision("${id}", ${record.messages.length} messages, expected ${expected}) of ${revision}`,
    run: async () => {
      const saved = await world.done(store.saveIfRevision(record, expected));
      assertEqual(saved, expected === revision, `The stored revision is ${revision}.`);
      if (saved) records.set(id, { ...record, revision: revision + 1 });
    },
  };
}
