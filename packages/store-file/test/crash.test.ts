/** A process that dies at any call of the store leaves what the next one goes on from: nothing acknowledged is lost, and nothing recorded is done twice. */
import fs from 'node:fs';
import {
  appendFrozen,
  deepFreeze,
  lastStep,
  type Checkpoint,
  type FullAgentStore,
  type InProgressCheckpoint,
  type Message,
} from '@lousho/contract';
import { crashSweep, type CrashWorld } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { fileStore } from '../src/index.ts';
import {
  approvalRecord,
  awaitingApproval,
  finished,
  inProgress,
  says,
  sessionRecord,
} from './support/fixtures.ts';
import { tempFolder } from './support/temp-store.ts';

const ID = 'chat.turn-0';
const APPROVAL_ID = `${ID}.apr-run00001-2-0`;
const TOOLS = ['reserve', 'charge', 'ship'];
const TTL_MS = 30_000;

it('holds at every call of a turn with tools, a decision and a commit', { timeout: 60_000 }, async () => {
  const folder = tempFolder();
  let stores = 0;
  const report = await crashSweep({
    createStore: (ports) => fileStore(`${folder}/${(stores += 1)}`, { ports, durability: 'process' }),
    run: (world) => runTurn(world, world.store as FullAgentStore),
    async check({ effects, checkpoints }) {
      expect([...effects.keys()]).toEqual(TOOLS);
      expect(effects.get('charge')).toBeLessThanOrEqual(2);
      expect(checkpoints).toEqual([]);
    },
  });
  expect(report.failures).toEqual([]);
  expect(report.points).toBeGreaterThan(30);
  // Nothing of the turn is left over, wherever its processes died.
  for (let store = 1; store <= stores; store += 1)
    expect(fs.readdirSync(`${folder}/${store}/runs`)).toEqual([]);
});

/** One turn of a session as an executor runs it; goes on from wherever the last process came to. */
async function runTurn({ ports, effect }: CrashWorld, store: FullAgentStore): Promise<void> {
  const { checkpoints, sessions } = store;
  const owner = ports.ids.random();
  const committed = await sessions.load('chat');
  if (committed == null) {
    const lease = await checkpoints.acquireLease(ID, owner, TTL_MS);
    if (lease === false) throw new Error('the lease was free');
    const save = async <State extends Checkpoint>(state: State): Promise<State> => {
      if (!(await checkpoints.saveIfLeased(ID, state, owner, lease.fence)))
        throw new Error('the lease was held');
      return state;
    };
    let state = (await checkpoints.load(ID)) ?? (await save(inProgress()));
    while (state.status !== 'finished') state = await nextState(state, { store, save, effect });
    expect(
      await sessions.saveIfRevision(sessionRecord('chat', { messages: state.messages, turn: 1 }), 0),
    ).toBe(true);
    await checkpoints.releaseLease(ID, owner, lease.fence);
  }
  await checkpoints.delete(ID);
}

interface Turn {
  readonly store: FullAgentStore;
  readonly save: <State extends Checkpoint>(state: State) => Promise<State>;
  readonly effect: (name: string) => void;
}

async function nextState(state: Checkpoint, { store, save, effect }: Turn): Promise<Checkpoint> {
  const open = lastStep(state.messages);
  const tool = TOOLS[state.stepIndex - 1] ?? '';
  if (open === undefined || open.answered === open.calls.length) {
    const asked = TOOLS[state.stepIndex];
    if (asked === undefined) return save(finished({ stepIndex: 3, messages: grown(state, says('Done.')) }));
    return save(inProgress({ stepIndex: state.stepIndex + 1, messages: grown(state, asks(asked)) }));
  }
  if (tool !== 'charge') return record(state, tool, { save, effect });
  if (state.status === 'in-progress' && state.approvals.length === 0) {
    await store.approvals.save(approvalRecord(APPROVAL_ID, { checkpointId: ID }));
    return save(awaitingApproval(APPROVAL_ID, { stepIndex: state.stepIndex, messages: state.messages }));
  }
  const decided =
    state.status === 'in-progress'
      ? state
      : await save(
          inProgress({
            stepIndex: state.stepIndex,
            messages: state.messages,
            approvals: state.approvals.map((approval) => ({
              ...approval,
              decision: { approved: true, source: 'person', decidedAt: state.savedAt },
            })),
          }),
        );
  await store.approvals.delete(APPROVAL_ID);
  return record(decided, tool, { save, effect });
}

function record(
  state: Checkpoint,
  tool: string,
  { save, effect }: Omit<Turn, 'store'>,
): Promise<InProgressCheckpoint> {
  effect(tool);
  return save(inProgress({ stepIndex: state.stepIndex, messages: grown(state, answers(tool)) }));
}

function grown({ messages }: Checkpoint, added: Message): readonly Message[] {
  return appendFrozen(messages, [added]);
}

function asks(tool: string): Message {
  return deepFreeze({
    role: 'assistant',
    content: [{ type: 'tool-call', toolCallId: `call_${tool}`, toolName: tool, args: {} }],
  });
}

function answers(tool: string): Message {
  return deepFreeze({
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: `call_${tool}`, toolName: tool, result: 'done' }],
  });
}
