/** Everything that a release stores, in one story: told on each store, it leaves the same runs, sessions and approvals. */
import type { AgentStore, Checkpoint } from '@lousho/contract';
import { plannedAgent } from './planned-agent.ts';
import { stillPorts, type StillClock } from './still-clock.ts';

/** When it begins, so that a release can be asked at that time, too. */
export const TOLD_AT_MS = Date.UTC(2026, 10, 1);
/** When its last process dies. */
export const DIED_AT_MS = TOLD_AT_MS + 5_000;
/** Later than anything in it can still be held. */
export const LONG_AFTER_MS = Date.UTC(2027, 10, 1);
const SECOND_MS = 1_000;

/** Tells it to the end. Two runs are then as their process left them that died. */
export async function tellStory(store: AgentStore, clock: StillClock): Promise<void> {
  const ports = stillPorts(clock, 'tell');
  const stop = new AbortController();
  const { agent } = plannedAgent({ store, ports, onHalt: () => stop.abort() });
  const nextSecond = (): void => clock.moveTo(clock.wallMs() + SECOND_MS);

  await agent.send('@look > Done.', {
    sessionId: 'finished',
    inputId: 'delivery-1',
    principal: { id: 'ann', roles: ['buyer'] },
    metadata: { tenant: 'north' },
    businessState: { cart: ['book'] },
  });
  nextSecond();
  await agent.fork('finished', {
    fromStep: 1,
    patch: { toolResult: { toolCallId: 'call_0_0', result: { found: [] } } },
  });
  await agent.send('@look > @look > Done.', { sessionId: 'Limited', maxSteps: 1 });
  await agent.send('@look > !', { sessionId: 'failed' }).catch(() => undefined);
  await agent.send('@halt > Done.', { sessionId: 'aborted', signal: stop.signal });

  nextSecond();
  const paused = await agent.send('@look @charge @charge > Done.', { sessionId: 'paused' });
  await agent.approvals.resolve({
    ...{ id: paused.approvalId ?? '', approved: true, args: { cents: 400 }, note: 'Less.', by: 'ann' },
  });
  const rejected = await agent.send('@charge > Sorry.', { sessionId: 'rejected' });
  await agent.approvals.resolve({ id: rejected.approvalId ?? '', approved: false, note: 'Not today.' });
  await agent.send('@mail > All done.', { sessionId: 'nested', approvalTtlMs: 10 * 365 * 86_400_000 });
  await agent.send('@ask > Booked.', { sessionId: 'asked' });
  if (store.approvals !== undefined)
    await plannedAgent({ store: { approvals: store.approvals }, ports }).agent.send('@charge > Done.');

  nextSecond();
  const chat = agent.session({ id: 'chat' });
  await chat.send('@look > Hello.', { inputId: 'delivery-2', businessState: { cart: ['pen'] } });
  await chat.send('@billing > Billing here.');
  nextSecond();
  await chat.send('@refund > Refunded.');
  await chat.fork({ fromStep: 1 });

  nextSecond();
  await dieInTools(store, clock);
}

/** One in a call of its own, with another's result and an input that wait for it; one in a call of its sub-agent. */
async function dieInTools(store: AgentStore, clock: StillClock): Promise<void> {
  const dying = plannedAgent({ store, ports: stillPorts(clock, 'gone'), diesShipping: true });
  const run = dying.agent.stream('@ship @look > Shipped.', { sessionId: 'interrupted' });
  run.result.catch(() => undefined);
  await untilStored(store, 'interrupted', ({ settledResults }) => settledResults.length === 1);
  run.enqueue('Wrap it.');
  await untilStored(store, 'interrupted', ({ heldInput }) => heldInput.length === 1);
  void dying.agent.send('@cargo > All done.', { sessionId: 'delegating' });
  while (dying.ran.length < 3) await turn();
}

async function untilStored(
  store: AgentStore,
  id: string,
  condition: (checkpoint: Checkpoint) => boolean,
): Promise<void> {
  for (;;) {
    const checkpoint = await store.checkpoints?.load(id);
    if (checkpoint && condition(checkpoint)) return;
    await turn();
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
