/** Strikes as it was planned: kills and stops processes, puts machines to sleep, sets clocks, lets the store fail. */
import type { Blow } from './plan.ts';
import type { Machine, RunningProcess, World } from './world.ts';

export function strike(world: World, blows: readonly Blow[]): void {
  for (const blow of blows) world.time.in(blow.atMs, () => land(world, blow));
}

function land(world: World, { kind, forMs, machine: index }: Blow): void {
  const machine = world.machines[index] as Machine;
  const { process } = machine.running;
  world.trace.note(kind.startsWith('store') ? 'all' : process.name, `${kind}, ${forMs} ms`);
  switch (kind) {
    case 'kill':
      machine.running.process.kill();
      return restartIn(world, machine, forMs);
    case 'stall':
      return process.stall(forMs);
    case 'suspend':
      return process.suspend(forMs);
    case 'leave':
      return leave(world, machine);
    case 'jump':
      return machine.clock.jump(forMs % 2 === 0 ? forMs : -forMs);
    case 'store fails':
      world.trouble.fails = 0.4;
      world.time.in(forMs, () => (world.trouble.fails = 0));
      return;
    case 'store is slow':
      world.trouble.slow = 0.2;
      world.time.in(forMs, () => (world.trouble.slow = 0));
  }
}

function restartIn(world: World, machine: Machine, delayMs: number): void {
  const { process } = machine.running;
  world.time.in(delayMs, () => {
    if (machine.running.process === process) world.restart(machine);
  });
}

/** Of a process that has said goodbye: long enough to see what it still does. */
const LINGER_MS = 15_000;

/** Of a shutdown: what does not end within ten seconds is given up. */
const GIVES_UP_AFTER_MS = 9_000;

/** What is still there a moment later is killed, as every platform does. */
function leave(world: World, machine: Machine): void {
  const { running } = machine;
  if (!running.process.isAlive || running.isLeaving) return;
  void goodbye(world, running).then(() => {
    world.time.in(LINGER_MS, () => running.process.kill());
    restartIn(world, machine, LINGER_MS);
  });
}

export async function goodbye(world: World, running: RunningProcess): Promise<void> {
  running.isLeaving = true;
  const askedMs = world.time.nowMs;
  const { type } = await world.request(running, 'says goodbye', () => running.agent.shutdown());
  running.process.hasLeft = type === 'resolved' && world.time.nowMs - askedMs < GIVES_UP_AFTER_MS;
}
