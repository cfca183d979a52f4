import type {
  AgentStore,
  AssistantPart,
  Checkpoint,
  CheckpointStore,
  JsonValue,
  Message,
} from '@lousho/contract';
import { expect, it } from 'vitest';
import {
  crashSweep,
  referenceStore,
  type CrashOutcome,
  type CrashScenario,
  type CrashWorld,
} from '../src/crash.ts';
import { checkpointOf, Worker, type Bug, type WorkerOptions } from './fixtures.ts';

const approvalId = 'order-7.apr-run00001-1-1';

async function runOrder(world: CrashWorld, options: WorkerOptions = {}): Promise<void> {
  let state = await new Worker(world, options).run();
  while (state.status === 'awaiting-approval')
    state = await new Worker(world, options).decide(approvalId, true);
}
function orderScenario(options: WorkerOptions = {}): CrashScenario {
  return { run: (world) => runOrder(world, options) };
}
/** The messages of all failures, for a look at what the sweep says. */
async function failuresOf(scenario: CrashScenario): Promise<string> {
  return (await crashSweep(scenario)).failures.map(({ message }) => message).join('\n');
}

it('dies before and after every store call of the control run, reads too, and every effect of a tool', async () => {
  const points: string[] = [];
  const outcomes: CrashOutcome[] = [];
  const report = await crashSweep({
    ...orderScenario(),
    check(outcome) {
      outcomes.push(outcome);
      points.push(outcome.crashPoint ? `${outcome.crashPoint.when} ${outcome.crashPoint.call}` : 'control');
    },
  });
  expect(report).toEqual({ points: 22, failures: [] });
  const calls = ['acquireLease#1', 'load#1', 'saveIfLeased#1', 'effect reserve#1', 'saveIfLeased#2'];
  expect(points.slice(0, 11)).toEqual([
    'control',
    ...calls.flatMap((call) => [`before ${call}`, `after ${call}`]),
  ]);
  expect(points.at(-1)).toBe('after releaseLease#1');
  expect(Object.fromEntries(outcomes[0]?.effects ?? [])).toEqual({ reserve: 1, charge: 1, ship: 1 });
  expect(outcomes[0]?.checkpoints).toMatchObject([{ sessionId: 'order-7', status: 'finished' }]);
  expect(outcomes[0]?.history).toHaveLength(5);
});

it('really loses the process: what was not recorded happens again, once', async () => {
  const repeated: string[] = [];
  await crashSweep({
    ...orderScenario(),
    check({ crashPoint, effects }) {
      for (const [name, count] of effects)
        if (count > 1) repeated.push(`${crashPoint?.when} ${crashPoint?.call} ${name}`);
    },
  });
  expect(repeated).toEqual([
    ...['after effect reserve#1 reserve', 'before saveIfLeased#2 reserve'],
    ...['after effect charge#1 charge', 'before saveIfLeased#3 charge'],
    ...['after effect ship#1 ship', 'before saveIfLeased#4 ship'],
  ]);
});

it('takes a run that pauses for a person, and one whose results settle early', async () => {
  expect(await failuresOf(orderScenario({ gated: true }))).toBe('');
  expect(await failuresOf(orderScenario({ parallel: true }))).toBe('');
});

it('begins each new process 10 minutes later, with the timers of the dead one gone', async () => {
  const log: string[] = [];
  const { failures } = await crashSweep({
    ends: 'any',
    async run({ store, ports, restart }) {
      const startMs = ports.clock.wallMs();
      log.push(`${restart}: start ${(startMs - Date.UTC(2026, 0, 1)) / 60_000} min`);
      ports.clock.setTimer(() => log.push(`${restart}: timer`), 5 * 60_000);
      await store.checkpoints?.load('order-7');
      await new Promise<void>((resolve) => ports.clock.setTimer(resolve, 6 * 60_000));
      log.push(`${restart}: end`);
    },
  });
  expect(failures).toEqual([]);
  const control = ['0: start 0 min', '0: timer', '0: end'];
  const crashed = ['0: start 0 min', '1: start 10 min', '1: timer', '1: end'];
  expect(log).toEqual([...control, ...crashed, ...crashed]);
});

it('counts no effect that a dead process still computes', async () => {
  const totals: (number | undefined)[] = [];
  await crashSweep({
    async run({ store, effect }) {
      const saving = store.checkpoints?.save('a', greeting);
      await Promise.resolve();
      effect('beside the save');
      await saving;
    },
    check: ({ effects }) => void totals.push(effects.get('beside the save')),
  });
  // Dying before the save comes first, dying after it a moment later than the effect; then before and after the effect.
  expect(totals).toEqual([1, 1, 2, 1, 2]);
});

it('restarts a process that died, also when its work did not wait for the call', async () => {
  const restarts: number[] = [];
  await crashSweep({
    async run({ store, restart }) {
      restarts.push(restart);
      void store.checkpoints?.save('a', greeting);
    },
  });
  expect(restarts).toEqual([0, 0, 1, 0, 1]);
});

it('restarts again when the process after the crash fails too', async () => {
  const starts: number[] = [];
  const report = await crashSweep({
    async run(world) {
      starts.push(world.restart);
      await runOrder(world);
      if (world.restart === 1) throw new Error('second crash');
    },
  });
  expect(report.failures).toEqual([]);
  expect(starts.filter((restart) => restart === 2)).toHaveLength(22);
});

it('reports a run that fails in every process, with its error', async () => {
  const { failures } = await crashSweep({
    async run(world) {
      if (world.restart > 0) throw new TypeError('no way back');
      await runOrder(world);
    },
  });
  expect(failures).toHaveLength(22);
  expect(failures[0]).toEqual({
    point: { call: 'acquireLease#1', when: 'before' },
    message: 'Process 5 failed: TypeError: no way back.',
  });
});

it('rejects when the scenario is wrong without any crash', async () => {
  const broken = { run: () => Promise.reject(new Error('no such tool')) };
  await expect(crashSweep(broken)).rejects.toThrow(
    'Without any crash: Process 0 failed: Error: no such tool.',
  );
  const wrong = { ...orderScenario(), check: () => Promise.reject(new Error('expected 8')) };
  await expect(crashSweep(wrong)).rejects.toThrow('Without any crash: The check failed: Error: expected 8.');
});

it.each<[Bug, WorkerOptions, RegExp]>([
  [
    'calls again what is recorded',
    {},
    /"reserve" happened once in process 1, with 1 of its 1 results recorded before/,
  ],
  [
    'changes a recorded result',
    {},
    /"order-7": save 2 had tool message 2 .*reserve ok.*, and what came after has not/,
  ],
  [
    'forgets a result',
    {},
    /messages\[3\] is a result of "call_ship" where the result of "call_charge" belongs/,
  ],
  [
    'leaves the approval in the inbox',
    { gated: true },
    /approval "order-7\.apr-run00001-1-1" is still in the inbox/,
  ],
  ['runs an approved call twice', { gated: true }, /"charge" was approved for once and happened 2 times/],
  ['drops the transcript when it resumes', {}, /save 2 had tool message 2 .*, and what came after has not/],
])('finds a worker that %s', async (bug, options, message) => {
  const gated = 'gated' in options;
  const scenario = orderScenario({ ...options, bug });
  if (gated && bug === 'leaves the approval in the inbox')
    await expect(crashSweep(scenario)).rejects.toThrow(message);
  else expect(await failuresOf(scenario)).toMatch(message);
});

it('finds a worker that calls again what had settled early', async () => {
  const scenario = orderScenario({ parallel: true, bug: 'calls again what is recorded' });
  expect(await failuresOf(scenario)).toMatch(
    /"ship" happened once in process 1, with 1 of its 1 results recorded/,
  );
});

it('finds a worker that changes a result which had settled early', async () => {
  const changing: CrashScenario = {
    run: (world) =>
      runOrder(world, { parallel: true, bug: world.restart > 0 ? 'changes a recorded result' : undefined }),
  };
  expect(await failuresOf(changing)).toMatch(/result of "call_ship" was recorded and is lost or changed/);
});

it('finds a run that does not finish, unless the scenario says that it may', async () => {
  const scenario = orderScenario({ bug: 'never finishes' });
  await expect(crashSweep(scenario)).rejects.toThrow('"order-7" is in-progress instead of finished.');
  expect(await failuresOf({ ...scenario, ends: 'any' })).toBe('');
});

it('finds the store that loses a save', async () => {
  const losing = (call: number): CrashScenario => ({
    ...orderScenario(),
    createStore: ({ clock }) => withLostSave(referenceStore({ clock }), call),
  });
  for (const [call, effect] of [[1, 'reserve'], [2, 'charge'], [3, 'ship'], [4]] as const) {
    const { failures } = await crashSweep(losing(call));
    // Whoever dies before the next save loses it; then the next one holds it again.
    const points = failures.map(({ point }) => `${point.when} ${point.call}`);
    const between = effect === undefined ? [] : [`before effect ${effect}#1`, `after effect ${effect}#1`];
    expect(points).toEqual([`after saveIfLeased#${call}`, ...between, `before saveIfLeased#${call + 1}`]);
    expect(failures[0]?.message).toContain(`save ${call} was acknowledged, and something else is stored`);
  }
  await expect(crashSweep(losing(5))).rejects.toThrow('"order-7" is in-progress instead of finished.');
  await expect(crashSweep({ ...losing(5), ends: 'any' })).rejects.toThrow(
    /save 5 had assistant message 5 .*Done/,
  );
  expect(await failuresOf(losing(99))).toBe('');
});

it('finds open calls in a run that finished, and takes them in one that may go on', async () => {
  const messages: Message[] = [{ role: 'user', content: 'Hi' }, calledOnce[0]];
  const saving = (status: 'in-progress' | 'finished'): CrashScenario => ({
    ends: 'any',
    run: async ({ store }) => store.checkpoints?.save('a', checkpointOf({ status, messages })),
  });
  expect(await failuresOf(saving('in-progress'))).toBe('');
  await expect(crashSweep(saving('finished'))).rejects.toThrow('messages[1] calls "t" (c)');
});

it('lets a resume refresh the system message', async () => {
  const refreshing: CrashScenario = {
    async run({ store, restart }) {
      const system: Message = { role: 'system', content: `Written by process ${restart}.` };
      await store.checkpoints?.save('a', { ...greeting, messages: [system, ...greeting.messages] });
      await store.checkpoints?.load('a');
    },
  };
  expect(await failuresOf(refreshing)).toBe('');
});

it('does not mistake results for effects when a tool has fewer of these', async () => {
  const steps = ['first', 'second'].map((toolCallId) => oneCall(toolCallId, 'pay'));
  const halfEffective: CrashScenario = {
    ends: 'any',
    async run({ store, effect }) {
      const stored = await store.checkpoints?.load('a');
      const messages: Message[] = [...(stored?.messages ?? greeting.messages)];
      for (const [index, step] of steps.entries()) {
        if (messages.length > 1 + index * 2) continue;
        if (index === 1) effect('pay');
        messages.push(...step);
        await store.checkpoints?.save('a', { ...greeting, messages: [...messages] });
      }
    },
  };
  expect(await failuresOf(halfEffective)).toBe('');
});

it('finds a checkpoint that vanished', async () => {
  const scenario: CrashScenario = {
    ...orderScenario(),
    createStore: ({ clock }) => {
      const store = referenceStore({ clock });
      return { ...store, checkpoints: { ...store.checkpoints, list: async () => [] } };
    },
  };
  await expect(crashSweep(scenario)).rejects.toThrow('"order-7" is gone, and nobody deleted it.');
});

it('says that a run got stuck instead of waiting for ever, and stops after three of them', async () => {
  const { points, failures } = await crashSweep({
    run: (world) => runOrder(world, { bug: world.restart > 0 ? 'never ends' : undefined }),
  });
  expect(points).toBe(22);
  expect(failures.map(({ message }) => message)).toEqual([
    'Process 1 got stuck.',
    'Process 1 got stuck.',
    'Process 1 got stuck. The points behind this one were not tried.',
  ]);
}, 30_000);

it('allows the call that a person approved with other arguments to be rewritten, and nothing else', async () => {
  const call = (args: JsonValue): AssistantPart => {
    return { type: 'tool-call', toolCallId: 'c', toolName: 'pay', args };
  };
  const user: Message = { role: 'user', content: 'Pay.' };
  const before: Message[] = [user, { role: 'assistant', content: [call({ sum: 1 })] }];
  const after = (proposedArgs: JsonValue): Message[] => [
    user,
    { role: 'assistant', content: [call({ sum: 2 })] },
    {
      role: 'tool',
      content: [
        {
          ...{ type: 'tool-result', toolCallId: 'c', toolName: 'pay', result: 'ok' },
          approval: { id: 'a', approved: true, decidedAt: '', proposedArgs },
        },
      ],
    },
  ];
  const saving = (proposedArgs: JsonValue): CrashScenario => ({
    async run({ store }) {
      if ((await store.checkpoints?.load('pay-1'))?.status === 'finished') return;
      for (const [status, messages] of [
        ['in-progress', before],
        ['finished', after(proposedArgs)],
      ] as const)
        await store.checkpoints?.save('pay-1', checkpointOf({ status, messages }));
    },
  });
  expect(await failuresOf(saving({ sum: 1 }))).toBe('');
  await expect(crashSweep(saving({ sum: 3 }))).rejects.toThrow('"pay-1": save 1 had assistant message 1');
});

it('takes what a finished session turn leaves behind: its messages are in the session', async () => {
  const turn = checkpointOf({
    status: 'finished',
    messages: [{ role: 'user', content: 'Hi' }, ...calledOnce],
  });
  const chat = (messages: Checkpoint['messages']): CrashScenario => ({
    async run({ store }) {
      const { usage, savedAt } = turn;
      const record = { id: 'chat', revision: 0, turn: 1, messages, inputIds: [], usage, savedAt };
      await store.checkpoints?.save('chat.turn-0', turn);
      await store.sessions?.saveIfRevision(record, 0);
      await store.checkpoints?.delete('chat.turn-0');
    },
  });
  expect(await failuresOf(chat(turn.messages))).toBe('');
  await expect(crashSweep(chat([]))).rejects.toThrow(
    'The session "chat" has no result of "c" of "chat.turn-0".',
  );
});

it('finds the checkpoint of a sub-agent that was left behind', async () => {
  const scenario: CrashScenario = {
    run: async ({ store }) =>
      store.checkpoints?.save(
        'lead.sub-abcd1234-1-0',
        checkpointOf({
          status: 'finished',
          messages: [{ role: 'user', content: 'Hi' }],
        }),
      ),
  };
  await expect(crashSweep(scenario)).rejects.toThrow('sub-agent "lead.sub-abcd1234-1-0" was left behind');
});

it('closes each storage once, when its processes are gone', async () => {
  let [opened, closed] = [0, 0];
  const closing: CrashScenario = {
    createStore: ({ clock }) => {
      opened += 1;
      return { ...referenceStore({ clock }), close: async () => void (closed += 1) };
    },
    async run(world) {
      await world.store.checkpoints?.save('a', greeting);
      await world.store.close?.();
    },
  };
  expect((await crashSweep(closing)).failures).toEqual([]);
  expect([opened, closed]).toEqual([5, 5]);
});

it('works on a store with nothing but save, load and delete', async () => {
  const minimal: CrashScenario = {
    createStore: ({ clock }) => {
      const { save, load, delete: remove } = referenceStore({ clock }).checkpoints;
      return { checkpoints: { save, load, delete: remove } };
    },
    async run({ store }) {
      expect('history' in (store.checkpoints ?? {})).toBe(false);
      const messages = [{ role: 'user', content: 'Hi' }] as const;
      await store.checkpoints?.save('a', checkpointOf({ status: 'finished', messages }));
    },
  };
  expect(await crashSweep(minimal)).toEqual({ points: 2, failures: [] });
});

const greeting = checkpointOf({ status: 'finished', messages: [{ role: 'user', content: 'Hi' }] });

function oneCall(toolCallId: string, toolName: string): readonly [Message, Message] {
  return [
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName, args: {} }] },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, result: 'ok' }] },
  ];
}
const calledOnce = oneCall('c', 't');

/** Acknowledges the save with this number and does not make it. */
function withLostSave(
  store: AgentStore & { readonly checkpoints: CheckpointStore },
  lost: number,
): AgentStore {
  const { checkpoints } = store;
  let count = 0;
  return {
    ...store,
    checkpoints: {
      ...checkpoints,
      async saveIfLeased(id, checkpoint, owner, fence) {
        count += 1;
        return count === lost
          ? true
          : ((await checkpoints.saveIfLeased?.(id, checkpoint, owner, fence)) ?? false);
      },
    },
  };
}

it('takes a save that comes about after the death of its process for what it is, however long the store takes to answer', async () => {
  const scenario: CrashScenario = {
    ends: 'any',
    createStore: ({ clock }) => slowStore(referenceStore({ clock })),
    async run({ store: { checkpoints } }) {
      if (await checkpoints?.load('order-7')) return;
      await checkpoints?.save('order-7', checkpointOf({ stepIndex: 1 }));
      await Promise.all([
        checkpoints?.save('order-7', checkpointOf({ stepIndex: 2 })),
        checkpoints?.load('another'),
      ]);
    },
  };
  expect(await failuresOf(scenario)).toBe('');
});

/** A save comes about long after it was asked for, and a load answers long after it has looked. */
function slowStore(store: AgentStore): AgentStore {
  const { checkpoints } = store;
  if (checkpoints === undefined) return store;
  return {
    checkpoints: {
      async save(id, checkpoint) {
        await turns(200);
        await checkpoints.save(id, checkpoint);
      },
      async load(id) {
        const found = await checkpoints.load(id);
        await turns(400);
        return found;
      },
      delete: (id) => checkpoints.delete(id),
    },
  };
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
