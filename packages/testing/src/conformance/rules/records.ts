/** What every store promises about the records of checkpoints: their content and size, damage, and other formats. */
import { CHECKPOINT_VERSION, deepFreeze, type Checkpoint, type CheckpointStore } from '@lousho/contract';
import { sameJson } from '../difference.ts';
import { assertEqual, awaitedLater, nameAndMessage, outcomeOf } from '../expectations.ts';
import { Mismatch, NotApplicable } from '../failure.ts';
import { ofDurable, ofEveryStore, type Rule } from '../rule.ts';
import { beginRun, grow, growingRun } from '../sample-runs.ts';
import type { World } from '../world.ts';
import { withUnknownFields } from './unknown-fields.ts';

export const recordRules: readonly Rule[] = [
  {
    id: 'C10',
    name: 'checkpoints/one-megabyte',
    rule: 'A checkpoint of 1 MB is stored; one that is too large for the store is `LOUSHO_CHECKPOINT_TOO_LARGE`.',
    ...ofEveryStore,
    run: saveLarge,
  },
  {
    id: 'C12',
    name: 'checkpoints/round-trip',
    rule: 'What was saved comes back equal as JSON, with fields that this release does not know, at every level, and with keys like `__proto__`.',
    ...ofEveryStore,
    async run(world) {
      const [writer, reader] = [await world.checkpoints(), await world.checkpoints()];
      const states = growingRun(world.now(), 3);
      const hint =
        'Store the JSON text as it is, or keep what you do not know; build objects without assigning to `__proto__`.';
      // Once as the first save, once as what a save adds.
      for (const state of [
        withUnknownFields(states[1] as Checkpoint),
        states[1],
        withUnknownFields(states[2] as Checkpoint),
      ]) {
        await writer.save('order-1', state as Checkpoint);
        await world.expectLoads([writer, reader], 'order-1', state as Checkpoint, hint);
      }
    },
  },
  {
    id: 'C13',
    name: 'checkpoints/nothing-shared',
    rule: 'Nothing that is given or returned is shared while anybody can still change it.',
    ...ofEveryStore,
    run: changeWhatIsShared,
  },
  {
    id: 'C14',
    name: 'checkpoints/damage-is-an-error',
    rule: 'A damaged record is `LOUSHO_CHECKPOINT_CORRUPT`, never an absent checkpoint and never an earlier state.',
    ...ofEveryStore,
    async run(world) {
      const writer = await world.checkpoints();
      for (const state of growingRun(world.now(), 3)) await writer.save('order-1', state);
      const other = beginRun(world.now());
      await writer.save('order-2', other);
      await world.settle();
      await world.corrupt('order-1');
      const reader = await world.checkpoints();
      await world.expectRefused(
        () => reader.load('order-1'),
        'LOUSHO_CHECKPOINT_CORRUPT',
        'Whoever takes damage for an empty store starts a finished job again. Check what you read with parseCheckpoint, and a checksum where text may be cut or changed.',
      );
      await world.expectLoads([reader], 'order-2', other, 'The others must be loaded as ever.');
    },
  },
  {
    id: 'C15',
    name: 'checkpoints/other-formats',
    rule: "A record of an older format comes back in today's shape; one of a newer format is `LOUSHO_STORE_VERSION_UNSUPPORTED` and stays as it was.",
    ...ofDurable,
    run: loadOtherFormats,
  },
];

async function saveLarge(world: World): Promise<void> {
  const [writer, reader] = [await world.checkpoints(), await world.checkpoints()];
  const small = beginRun(world.now());
  await writer.save('order-1', small);
  for (const bytes of [1_000_000, 4_000_000]) {
    const large = beginRun(world.now(), { messages: [{ role: 'user', content: 'ä'.repeat(bytes / 2) }] });
    const outcome = await world.done(outcomeOf(() => writer.save('order-1', large)));
    if (outcome.error === undefined) {
      await world.expectLoads([reader], 'order-1', large, `These were ${bytes} bytes.`);
      await writer.save('order-1', small);
      continue;
    }
    const { code } = outcome.error as { readonly code?: unknown };
    if (bytes === 1_000_000)
      throw new Mismatch(
        'a checkpoint of 1 MB is stored',
        outcome.error,
        'Split it over several records where one cannot hold it.',
      );
    assertEqual(code, 'LOUSHO_CHECKPOINT_TOO_LARGE', `This is how ${bytes} bytes were refused.`);
    await world.expectLoads(
      [reader],
      'order-1',
      small,
      'A save that is refused leaves the state before it (C9).',
    );
  }
}

async function changeWhatIsShared(world: World): Promise<void> {
  const [writer, reader] = [await world.checkpoints(), await world.checkpoints()];
  const state = grow(beginRun(world.now()), world.now());
  const given = structuredClone(state);
  const saving = awaitedLater(writer.save('order-1', given));
  // At once: what counts is the value at the time of the call.
  changeDeep(given);
  await world.done(saving);
  const handles = [writer, reader];
  await world.expectLoads(
    handles,
    'order-1',
    state,
    'Copy what you are given before the first await; frozenCopy(checkpoint) does.',
  );
  for (const handle of handles) {
    for (const returned of await everythingReturned(handle)) changeDeep(returned);
    const hint =
      'Somebody changed what a method had returned. Return a copy, or freeze it: deepFreeze(value).';
    await world.expectLoads(handles, 'order-1', state, hint);
    for (const [index, returned] of (await everythingReturned(handle)).entries())
      if (!sameJson(state, returned)) throw new Mismatch(state, returned, `${hint} (value ${index})`);
  }
}

async function everythingReturned(handle: CheckpointStore): Promise<readonly unknown[]> {
  const [entry] = (await handle.history?.('order-1')) ?? [];
  const [listed] = (await handle.list?.()) ?? [];
  return [await handle.load('order-1'), entry?.checkpoint, listed?.checkpoint].filter(
    (value) => value !== undefined && value !== null,
  );
}

/** Changes all that can be changed. What is frozen stays, and that is as good as a copy. */
function changeDeep(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const member of Object.values(value)) changeDeep(member);
  if (Object.isFrozen(value)) return;
  if (Array.isArray(value)) value.push('changed from outside');
  else Object.assign(value, { changedFromOutside: true });
}

/** Records as another release would have written them. */
async function loadOtherFormats(world: World): Promise<void> {
  const [writer, reader] = [await world.checkpoints(), await world.checkpoints()];
  const today = beginRun(world.now());
  const { status: _status, version: _version, ...fields } = today;
  // Before checkpoints had a version or a status, every stored run was unfinished.
  await saveForeign(world, writer, 'older', deepFreeze(fields));
  await world.expectLoads(
    [reader],
    'older',
    today,
    'Read every record with parseCheckpoint(value, id): it upgrades older shapes.',
  );
  await saveForeign(world, writer, 'newer', deepFreeze({ ...today, version: CHECKPOINT_VERSION + 1 }));
  for (const handle of [reader, await world.checkpoints()])
    await world.expectRefused(
      () => handle.load('newer'),
      'LOUSHO_STORE_VERSION_UNSUPPORTED',
      'parseCheckpoint(value, id) refuses formats that this release does not know. Reading must not rewrite them.',
    );
}

/** Some stores look at what they save. One that refuses a foreign format cannot be asked how it reads one. */
async function saveForeign(
  world: World,
  writer: CheckpointStore,
  id: string,
  record: unknown,
): Promise<void> {
  const { error } = await world.done(outcomeOf(() => writer.save(id, record as Checkpoint)));
  if (error !== undefined)
    throw new NotApplicable(`the store saves no ${id} format: ${nameAndMessage(error)}`);
}
