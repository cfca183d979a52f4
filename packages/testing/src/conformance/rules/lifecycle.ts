/** What every store promises about its claims and its end. Pruning: `pruning.ts`. */
import {
  CONTRACT_VERSION,
  type AgentStore,
  type Checkpoint,
  type CheckpointStore,
  type StoreClaims,
} from '@lousho/contract';
import { assertEqual, outcomeOf } from '../expectations.ts';
import { Mismatch, NotApplicable } from '../failure.ts';
import { ofEveryStore, type Rule } from '../rule.ts';
import { approvalRecord, beginRun, growingRun, sessionRecord } from '../sample-runs.ts';
import type { World } from '../world.ts';

const LEASE_METHODS = ['acquireLease', 'renewLease', 'releaseLease', 'saveIfLeased'] as const;

export const lifecycleRules: readonly Rule[] = [
  {
    id: 'Z1',
    name: 'lifecycle/claims-and-methods-agree',
    rule: 'Claims and methods agree: what is claimed is there, and what is not claimed is absent.',
    ...ofEveryStore,
    async run(world) {
      const { checkpoints } = await world.open();
      const { claims } = world;
      const claimed = checkpoints?.claims ?? claimsFromMethods(checkpoints, claims);
      assertEqual(claimed, claims, 'The claims of the subject must be those of the opened store.');
      if (checkpoints === undefined) return;
      const hasLeases = claims.leases !== 'none';
      assertEqual(
        methodsOf(checkpoints),
        {
          history: claims.history,
          list: claims.list,
          ...Object.fromEntries(LEASE_METHODS.map((method) => [method, hasLeases])),
        },
        'Claim what the store does, and leave out the methods of what it does not: agents look for the methods.',
      );
      if (!claims.list && checkpoints.listHeaders !== undefined)
        throw new Mismatch(
          'no listHeaders',
          'listHeaders is there',
          'listHeaders belongs to the claim `list`.',
        );
      if (!hasLeases && checkpoints.heldLeases !== undefined)
        throw new Mismatch(
          'no heldLeases',
          'heldLeases is there',
          'heldLeases belongs to the claim `leases`.',
        );
    },
  },
  {
    id: 'Z5',
    name: 'lifecycle/close-keeps-what-was-acknowledged',
    rule: 'After `close` resolves, what was acknowledged is stored, and closing twice is fine.',
    ...ofEveryStore,
    run: closeWhileSaving,
  },
  {
    id: 'Z6',
    name: 'lifecycle/closed-is-refused',
    rule: 'Every call of a handle after its `close` rejects with `LOUSHO_STORE_CLOSED`; other handles on the storage go on.',
    ...ofEveryStore,
    async run(world) {
      const other = (await world.hasManyHandles()) ? await world.checkpoints() : undefined;
      const store = await world.open();
      const state = beginRun(world.now());
      await world.checkpointsOf(store).save('order-1', state);
      await world.closeOf(store)();
      world.forget(store);
      await expectClosed(world, store);
      if (other === undefined) return;
      const [, next] = growingRun(world.now(), 2) as [Checkpoint, Checkpoint];
      await world.expectLoads([other], 'order-1', state, 'Closing one handle must not disturb another.');
      await other.save('order-1', next);
      await world.expectLoads(
        [other, await world.checkpoints()],
        'order-1',
        next,
        'Closing one handle must not disturb another.',
      );
    },
  },
  {
    id: 'Z7',
    name: 'lifecycle/async-dispose',
    rule: '`Symbol.asyncDispose` is `close`.',
    ...ofEveryStore,
    async run(world) {
      const store = await world.open();
      const dispose = disposeOf(store);
      if (dispose === undefined) throw new NotApplicable('the store has no Symbol.asyncDispose');
      await world.checkpointsOf(store).save('order-1', beginRun(world.now()));
      const close = world.closeOf(store);
      await world.done(dispose());
      world.forget(store);
      await expectClosed(world, store);
      await world.done(dispose());
      await close();
    },
  },
  {
    id: 'Z8',
    name: 'lifecycle/contract-version',
    rule: '`contractVersion` is the number of the contract that the store keeps; absent counts as 1, and a newer one than the agent knows is refused.',
    ...ofEveryStore,
    async run(world) {
      const { contractVersion = 1 } = (await world.open()) as { readonly contractVersion?: unknown };
      const isKnown =
        typeof contractVersion === 'number' &&
        Number.isInteger(contractVersion) &&
        contractVersion >= 1 &&
        contractVersion <= CONTRACT_VERSION;
      if (!isKnown)
        throw new Mismatch(
          `a whole number from 1 to ${CONTRACT_VERSION}`,
          contractVersion,
          'createAgent refuses this store. For a newer contract use the suite of the release that knows it.',
        );
    },
  },
];

/** Of a store without claims: strong, and what its methods suggest otherwise. How durable it is only the subject can say. */
function claimsFromMethods(checkpoints: CheckpointStore | undefined, { durable }: StoreClaims): StoreClaims {
  const hasLeases = LEASE_METHODS.some((method) => checkpoints?.[method] !== undefined);
  return {
    leases: hasLeases ? 'atomic' : 'none',
    history: checkpoints?.history !== undefined,
    list: checkpoints?.list !== undefined,
    durable,
    consistency: 'strong',
  };
}

function methodsOf(checkpoints: CheckpointStore): { readonly [method: string]: boolean } {
  const methods = ['history', 'list', ...LEASE_METHODS] as const;
  return Object.fromEntries(methods.map((method) => [method, checkpoints[method] !== undefined]));
}

function disposeOf(store: AgentStore): (() => Promise<void>) | undefined {
  for (const part of [store, store.checkpoints]) {
    const dispose = part?.[Symbol.asyncDispose];
    if (dispose !== undefined) return () => dispose.call(part);
  }
  return undefined;
}

/** Saves that are under way when the handle is closed: each is stored or refused, and nobody is told the wrong thing. */
async function closeWhileSaving(world: World): Promise<void> {
  const store = await world.open();
  const checkpoints = world.checkpointsOf(store);
  const close = world.closeOf(store);
  const state = beginRun(world.now());
  await checkpoints.save('acknowledged', state);
  const ids = Array.from({ length: 8 }, (_none, index) => `order-${index}`);
  const saves = ids.map((id) => outcomeOf(() => checkpoints.save(id, state)));
  await close();
  world.forget(store);
  const outcomes = await world.done(Promise.all(saves));
  const again = await world.done(outcomeOf(close));
  if (again.error !== undefined)
    throw new Mismatch('closing twice resolves', again.error, 'Keep the promise of the first close.');
  for (const { error } of outcomes)
    if (error !== undefined)
      assertEqual(
        (error as { readonly code?: unknown }).code,
        'LOUSHO_STORE_CLOSED',
        'A save that close cuts off says so.',
      );
  // What only memory keeps goes with the handle.
  if (world.claims.durable === 'memory') return;
  const other = await world.checkpoints();
  for (const id of ['acknowledged', ...ids.filter((_id, index) => outcomes[index]?.error === undefined)])
    await world.expectLoads(
      [other],
      id,
      state,
      'close() waits for the saves that are under way, or refuses them.',
    );
}

async function expectClosed(world: World, store: AgentStore): Promise<void> {
  for (const [what, call] of callsOf(store, world.now()))
    await world.expectRefused(call, 'LOUSHO_STORE_CLOSED', `This was ${what} after close().`);
}

/** Every method of every part that the store has. */
function* callsOf(store: AgentStore, now: string): Iterable<readonly [string, () => Promise<unknown>]> {
  const { checkpoints, approvals, sessions } = store;
  const state = beginRun(now);
  const [id, owner] = ['order-1', 'owner'];
  const args: { readonly [method: string]: readonly unknown[] } = {
    'checkpoints.save': [id, state],
    'checkpoints.load': [id],
    'checkpoints.delete': [id],
    'checkpoints.history': [id],
    'checkpoints.list': [],
    'checkpoints.listHeaders': [],
    'checkpoints.acquireLease': [id, owner, 30_000],
    'checkpoints.renewLease': [id, owner, 30_000],
    'checkpoints.releaseLease': [id, owner],
    'checkpoints.saveIfLeased': [id, state, owner],
    'checkpoints.prune': [{ olderThanMs: 0 }],
    'approvals.save': [approvalRecord('a-1', now)],
    'approvals.load': ['a-1'],
    'approvals.list': [],
    'approvals.delete': ['a-1'],
    'sessions.load': ['chat-1'],
    'sessions.saveIfRevision': [sessionRecord('chat-1', now), 0],
    'sessions.delete': ['chat-1'],
    'sessions.list': [],
    'store.prune': [{ olderThanMs: 0 }],
  };
  const parts: { readonly [part: string]: object | undefined } = { checkpoints, approvals, sessions, store };
  for (const [name, values] of Object.entries(args)) {
    const [partName = '', methodName = ''] = name.split('.');
    const part = parts[partName];
    const method: unknown = part === undefined ? undefined : Reflect.get(part, methodName);
    if (typeof method === 'function')
      yield [`${name}()`, async (): Promise<unknown> => Reflect.apply(method, part, values) as unknown];
  }
}
