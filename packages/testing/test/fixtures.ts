/** A durable worker in a few lines, right in every crash, with one planted bug at a time: what the crash kit is tested on. */
import {
  CHECKPOINT_VERSION,
  emptyUsage,
  type AgentStore,
  type ApprovalDecision,
  type Checkpoint,
  type ExecutionResult,
  type Message,
  type ToolCallPart,
  type ToolResultPart,
} from '@lousho/contract';
import type { CrashableAgent, CrashWorld } from '../src/crash.ts';

export type Bug =
  | 'calls again what is recorded'
  | 'changes a recorded result'
  | 'forgets a result'
  | 'never finishes'
  | 'never ends'
  | 'leaves the approval in the inbox'
  | 'runs an approved call twice'
  | 'drops the transcript when it resumes';

export interface WorkerOptions {
  readonly bug?: Bug | undefined;
  /** Tool called `charge` waits for a person. */
  readonly gated?: boolean | undefined;
  /** Runs the tools at once, so results settle early and out of order. */
  readonly parallel?: boolean | undefined;
}

const LEASE_MS = 30_000;
const OWN = 'order-7';
const calls: readonly ToolCallPart[] = ['reserve', 'charge', 'ship'].map((toolName) => {
  return { type: 'tool-call', toolCallId: `call_${toolName}`, toolName, args: {} };
});
const start: Message[] = [
  { role: 'user', content: 'Order 7, please.' },
  { role: 'assistant', content: calls },
];

export function checkpointOf(fields: Partial<Checkpoint>): Checkpoint {
  return {
    version: CHECKPOINT_VERSION,
    runId: 'run-0001',
    agentName: 'worker',
    status: 'in-progress',
    messages: start,
    stepIndex: 1,
    usage: emptyUsage,
    runInput: { start: 0, count: 1 },
    heldInput: [],
    inputIds: [],
    settledResults: [],
    startedToolCallIds: [],
    approvals: [],
    delegatedInFlight: [],
    savedAt: '2026-01-01T00:00:00.000Z',
    ...fields,
  } as Checkpoint;
}

/** Runs the three calls of the order, each recorded before the next begins, and finishes. */
export class Worker {
  private readonly checkpoints: NonNullable<AgentStore['checkpoints']>;
  private readonly owner: string;
  private fence = 0;

  constructor(
    private readonly world: CrashWorld,
    private readonly options: WorkerOptions = {},
    private readonly id = OWN,
  ) {
    this.checkpoints = world.store.checkpoints ?? missing();
    this.owner = world.ports.ids.random();
  }

  async run(): Promise<Checkpoint> {
    await this.takeLease();
    let state = await this.begin();
    while (state.status === 'in-progress') state = await this.step(state);
    await this.checkpoints.releaseLease?.(this.id, this.owner, this.fence);
    return state;
  }

  async decide(approvalId: string, approved: boolean): Promise<Checkpoint> {
    await this.takeLease();
    const state = (await this.checkpoints.load(this.id)) ?? missing();
    const decision = { approved, source: 'person', decidedAt: state.savedAt } as const;
    const approvals = state.approvals.map((approval) => ({ ...approval, decision }));
    if (state.status === 'awaiting-approval') await this.save({ ...state, status: 'in-progress', approvals });
    if (this.options.bug !== 'leaves the approval in the inbox')
      await this.world.store.approvals?.delete(approvalId);
    return this.run();
  }

  private async begin(): Promise<Checkpoint> {
    const stored = await this.checkpoints.load(this.id);
    if (!stored) return this.save(checkpointOf({ startedToolCallIds: [] }));
    // A crash may have left the record of a decided approval behind.
    for (const { id, decision } of stored.approvals)
      if (decision && this.options.bug !== 'leaves the approval in the inbox')
        await this.world.store.approvals?.delete(id);
    const { bug } = this.options;
    if (bug === 'drops the transcript when it resumes' && stored.status === 'in-progress')
      return this.save({ ...stored, messages: start });
    if (bug === 'changes a recorded result' && stored.status === 'in-progress')
      return this.save({ ...stored, messages: stored.messages.map(withOtherResult) });
    return stored;
  }

  private async step(state: Checkpoint): Promise<Checkpoint> {
    const { bug, gated, parallel } = this.options;
    const done =
      bug === 'calls again what is recorded' && this.firstStep() ? 0 : state.messages.length - start.length;
    const call = calls[done];
    if (bug === 'never ends') return new Promise(() => undefined);
    if (call === undefined) {
      if (bug === 'never finishes') return { ...state, status: 'finished', finishReason: 'stop' };
      const bye: Message = { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] };
      return this.save({
        ...state,
        messages: [...state.messages, bye],
        status: 'finished',
        finishReason: 'stop',
      });
    }
    if (bug === 'forgets a result' && call.toolName === 'charge' && this.world.restart > 0)
      return this.save({ ...state, messages: [...state.messages, resultMessage(calls[2] ?? call)] });
    if (gated === true && call.toolName === 'charge' && state.approvals.length === 0)
      return this.pause(state, call);
    if (parallel === true) return this.runAll(state);
    const settled = await this.callTool(state, call);
    const messages = [...state.messages, resultMessage(call, settled)];
    return this.save({ ...state, messages, startedToolCallIds: [] });
  }

  private steps = 0;
  private firstStep(): boolean {
    return this.steps++ === 0;
  }

  /** The approved call is marked before it runs, and never runs a second time. */
  private async callTool(state: Checkpoint, call: ToolCallPart): Promise<Partial<ToolResultPart>> {
    const [approval] = state.approvals;
    if (approval?.toolCallId !== call.toolCallId || !approval.decision) {
      this.world.effect(call.toolName);
      return {};
    }
    const audit = {
      approval: { id: approval.id, approved: approval.decision.approved, decidedAt: state.savedAt },
    };
    if (!approval.decision.approved) return { ...audit, kind: 'rejected', isError: true };
    if (this.options.bug !== 'runs an approved call twice') {
      if (state.startedToolCallIds.includes(call.toolCallId))
        return { ...audit, kind: 'interrupted', isError: true };
      await this.save({ ...state, startedToolCallIds: [call.toolCallId] });
    }
    this.world.effect(call.toolName);
    return audit;
  }

  /** The last call settles first and is recorded early; placed when those before it are. */
  private async runAll(state: Checkpoint): Promise<Checkpoint> {
    const done = state.messages.length - start.length;
    let current = state;
    for (const call of [...calls.slice(done)].reverse()) {
      const isRecorded = current.settledResults.some(({ toolCallId }) => toolCallId === call.toolCallId);
      if (!isRecorded || this.options.bug === 'calls again what is recorded')
        this.world.effect(call.toolName);
      if (isRecorded) continue;
      const early = [...current.settledResults, ...resultMessage(call).content];
      current = await this.save({ ...current, settledResults: early });
    }
    const changed = this.options.bug === 'changes a recorded result' ? { result: 'other' } : {};
    const placed = calls.slice(done).map((call) => resultMessage(call, changed));
    return this.save({ ...current, settledResults: [], messages: [...current.messages, ...placed] });
  }

  private async pause(state: Checkpoint, call: ToolCallPart): Promise<Checkpoint> {
    const id = `${this.id}.apr-run00001-1-1`;
    const { runId, agentName, savedAt } = state;
    const approval = {
      id,
      kind: 'tool',
      toolCallId: call.toolCallId,
      argsHash: '',
      createdAt: savedAt,
    } as const;
    const { toolName, args } = call;
    await this.world.store.approvals?.save({
      ...{ ...approval, runId, agentName, toolName, args },
      checkpointId: this.id,
    });
    return this.save({
      ...state,
      status: 'awaiting-approval',
      approvals: [approval],
      approvalId: id,
      approvalIds: [id],
    });
  }

  private async takeLease(): Promise<void> {
    const lease = await this.checkpoints.acquireLease?.(this.id, this.owner, LEASE_MS);
    if (typeof lease !== 'object') throw new Error('busy');
    this.fence = lease.fence;
  }

  private async save(state: Checkpoint | object): Promise<Checkpoint> {
    const saved = await this.checkpoints.saveIfLeased?.(this.id, state as Checkpoint, this.owner, this.fence);
    if (saved !== true) throw new Error('lost the lease');
    return state as Checkpoint;
  }
}

/** The worker as an agent that `crashTest` can drive. */
export function workerAgent(world: CrashWorld, options: WorkerOptions = {}): CrashableAgent {
  return {
    runOnce: async (id) => resultOfRun(await new Worker(world, options, id).run()),
    approvals: {
      get: async (id) => (await world.store.approvals?.load(id)) ?? undefined,
      resolve: async ({ id, approved }: ApprovalDecision) =>
        resultOfRun(await new Worker(world, options, id.replace(/\.apr-.*/, '')).decide(id, approved)),
    },
  };
}

function resultOfRun(state: Checkpoint): ExecutionResult {
  const { status, messages, runId, agentName, usage } = state;
  const base = { runId, agentName, usage, messages, text: '', steps: 1, toolCalls: [] };
  return status === 'awaiting-approval'
    ? {
        ...base,
        finishReason: 'awaiting-approval',
        approvalId: state.approvalId,
        approvalIds: state.approvalIds,
      }
    : { ...base, finishReason: 'stop' };
}

function resultMessage(call: ToolCallPart, fields: Partial<ToolResultPart> = {}) {
  const { toolCallId, toolName } = call;
  const part: ToolResultPart = {
    type: 'tool-result',
    toolCallId,
    toolName,
    result: `${toolName} ok`,
    ...fields,
  };
  return { role: 'tool', content: [part] } as const;
}

function withOtherResult(message: Message): Message {
  return message.role === 'tool'
    ? { role: 'tool', content: [{ ...message.content[0], result: 'other' }] }
    : message;
}

function missing(): never {
  throw new Error('missing');
}
