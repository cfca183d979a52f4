/** The open calls of a step: which run, in which order, how many at a time; their results recorded as they settle. */
import type { DelegatedInFlight, ToolCallPart, ToolResultPart } from '@lousho/contract';
import { pauseForApproval, type GatedCall } from './approval-gate.ts';
import { callTool, type CallOutcome, type ReadyCall } from './call-tool.ts';
import { isTaskCall, removeChildren } from './child-leftovers.ts';
import { takeoverFacts, type Takeover } from './hand-over.ts';
import { handoffOf } from './handoff-tool.ts';
import { approvalOfCall, type OpenCall } from './next-action.ts';
import { prepareCall, type PreparedCall } from './prepare-call.ts';
import type { Run } from './run.ts';
import { errorEvent } from './run-events.ts';
import { endedFacts } from './task-ledger.ts';
import { failures, withAudits } from './tool-result.ts';

/**
 * Resolves when no call of the step is running and what settled is stored: every call has its result, or those that are left wait for
 * a person (then the pause is stored too), or the run must stop.
 * @throws what a tool or hook rejects the run with, after the siblings have ended
 */
export async function runTools(run: Run, open: readonly OpenCall[]): Promise<void> {
  const batch = new ToolBatch(run);
  const calls = handoffsLast(run, open);
  if (run.engine.toolConcurrency >= calls.length) await runAllAtOnce(batch, calls);
  else await runSome(batch, calls);
  await batch.end();
}

/** Whoever takes over finds a step in which everything else is done. One at a time: the first that takes place is the last of the step. */
function handoffsLast(run: Run, calls: readonly OpenCall[]): readonly OpenCall[] {
  const others = calls.filter(({ call }) => !isHandoff(run, call));
  return others.length > 0 ? others : calls.slice(0, 1);
}

function isHandoff(run: Run, { toolName }: ToolCallPart): boolean {
  return handoffOf(run.agent.tools.get(toolName)) !== undefined;
}

/** Every gate is evaluated before the first call starts, so that what begins together is marked in one save. */
async function runAllAtOnce(batch: ToolBatch, calls: readonly OpenCall[]): Promise<void> {
  const ready: [OpenCall, ReadyCall][] = [];
  for (const open of calls) {
    const prepared = await batch.prepare(open);
    if (prepared !== undefined) ready.push([open, prepared]);
  }
  const marked = ready.filter(([, { needsMark }]) => needsMark).map(([open]) => open);
  if (marked.length > 0) await batch.mark(marked);
  await Promise.all(ready.map(([open, prepared]) => batch.execute(open, prepared)));
}

/** Each call's gate is evaluated, and its mark saved, just before it starts; one call at a time passes the gate, so they start in call order. */
async function runSome(batch: ToolBatch, calls: readonly OpenCall[]): Promise<void> {
  const waiting = [...calls];
  let gate: Promise<unknown> = Promise.resolve();
  const worker = async (): Promise<void> => {
    for (let open = waiting.shift(); open !== undefined; open = waiting.shift()) {
      const current = open;
      const passing = gate.then(async () => {
        const prepared = await batch.prepare(current);
        if (prepared?.needsMark) await batch.mark([current]);
        return prepared;
      });
      gate = passing;
      const prepared = await passing;
      if (prepared !== undefined) await batch.execute(current, prepared);
    }
  };
  await Promise.all(Array.from({ length: batch.run.engine.toolConcurrency }, worker));
}

class ToolBatch {
  readonly #gated: GatedCall[] = [];
  /** Positions of the calls that began. */
  readonly #begun = new Set<number>();
  /** By call position: the first in call order is what the run rejects with. */
  readonly #rejections = new Map<number, unknown>();
  /** By call position: what its sub-agent spent, and what became of tasks in the background. */
  readonly #outcomes = new Map<number, Extract<CallOutcome, { type: 'result' }>>();
  /** Sub-agents whose results are on their way into the checkpoint. */
  readonly #endedChildren = new Set<string>();
  #takeover: Takeover | undefined;
  #settledNow: { readonly open: OpenCall; readonly result: ToolResultPart }[] = [];
  #isFlushPlanned = false;
  #lastSave: Promise<void> | undefined;
  #saveError: { readonly error: unknown } | undefined;

  constructor(readonly run: Run) {}

  /** `undefined` when the call does not run: it has its result, waits for a person, or the run stops. Never rejects. */
  async prepare(open: OpenCall): Promise<ReadyCall | undefined> {
    const { run } = this;
    const { call } = open;
    if (!this.#mayStart()) return undefined;
    if (run.input.isSteered)
      return this.#settle(
        open,
        this.#mayHaveBegun(open) ? failures.interrupted(call) : failures.steeredAway(call),
      );
    try {
      const prepared = await prepareCall(run, open);
      return this.#sort(open, prepared);
    } catch (error) {
      this.#rejections.set(open.index, error);
      return undefined;
    }
  }

  /** Stored before the calls begin: a crash from here on shows that they may have taken effect. */
  async mark(calls: readonly OpenCall[]): Promise<void> {
    if (!this.#mayStart()) return;
    try {
      await this.run.commit({ type: 'callsStarted', toolCallIds: calls.map(({ call }) => call.toolCallId) });
    } catch (error) {
      this.#saveError ??= { error };
    }
  }

  /** Never rejects: what the call throws becomes its result, or rejects the run when its siblings have ended. */
  async execute(open: OpenCall, ready: ReadyCall): Promise<void> {
    const { run } = this;
    try {
      const renewing = run.ensureHeld();
      if (renewing !== undefined) await renewing;
    } catch (error) {
      this.#saveError ??= { error };
    }
    if (!this.#mayStart()) return;
    this.#begun.add(open.index);
    const { call } = open;
    const { approvalId } = ready;
    const about = { toolCallId: call.toolCallId, toolName: call.toolName, args: ready.args };
    if (approvalId === undefined) run.events.emit('tool.start', about);
    else run.events.emit('tool.resume', { ...about, approvalId });
    const startedMs = run.engine.ports.clock.monotonicMs();
    this.#take(open, await callTool(run, open, ready), startedMs);
  }

  /** @throws what rejects the run */
  async end(): Promise<void> {
    await this.#record();
    // Whatever is still open when an abort comes during that save is this batch's to cancel: it knows what began.
    if (this.run.stop.current?.type === 'abort') await this.#record();
    if (this.#saveError !== undefined) throw this.#saveError.error;
    const first = [...this.#rejections.keys()].sort((a, b) => a - b)[0];
    const { stop } = this.run;
    if (first !== undefined && stop.current?.type !== 'abort') throw this.#rejections.get(first);
    if (this.#gated.length === 0) return;
    await this.run.background.suspend();
    if (this.#mayPause()) await pauseForApproval(this.run, this.#gated);
  }

  /** Gates are evaluated again after a shutdown; what a tool asked when it had done its part would be lost. */
  #mayPause(): boolean {
    const { current } = this.run.stop;
    if (current === undefined) return this.#gated.length > 0;
    return current.type === 'shutdown' && this.#gated.some(({ asked }) => asked !== undefined);
  }

  async #record(): Promise<void> {
    this.#cancelUnstarted();
    this.#steerHandoffs();
    this.#flush();
    await this.#lastSave;
    if (this.#saveError !== undefined || this.#endedChildren.size === 0) return;
    const childIds = [...this.#endedChildren];
    this.#endedChildren.clear();
    await removeChildren(this.run, childIds);
  }

  #mayStart(): boolean {
    return (
      this.run.stop.current === undefined && this.#rejections.size === 0 && this.#saveError === undefined
    );
  }

  #sort(open: OpenCall, prepared: PreparedCall): ReadyCall | undefined {
    if (prepared.type === 'ready') return prepared;
    if (prepared.type === 'settled') return this.#settle(open, prepared.result, prepared.replacedByHook);
    const { type: _type, ...gate } = prepared;
    this.#gated.push({ ...open, ...gate });
    return undefined;
  }

  #take(open: OpenCall, outcome: CallOutcome, startedMs: number): void {
    switch (outcome.type) {
      case 'open':
        return;
      case 'propagated':
        this.#rejections.set(open.index, outcome.error);
        return;
      case 'waits':
        if ('asked' in outcome) {
          const { args, ...asked } = outcome.asked;
          this.#gated.push({ ...open, kind: 'question', args, asked });
          return;
        }
        for (const inside of outcome.pauses)
          this.#gated.push({ ...open, kind: inside.approval.kind, args: inside.args, inside });
        return;
      case 'result':
        this.#outcomes.set(open.index, outcome);
        if (outcome.businessState !== undefined) this.run.businessState = outcome.businessState;
        if (outcome.hookError !== undefined) this.#rejections.set(open.index, outcome.hookError);
        this.#settle(open, outcome.result, outcome.replacedByHook, startedMs);
        if (outcome.takeover !== undefined) this.#handOver(open, outcome.takeover);
    }
  }

  /** The other handoffs of the response have their results in the same save: who answers now may not even have their tools. */
  #handOver(open: OpenCall, takeover: Takeover): void {
    this.#takeover = takeover;
    for (const other of this.run.openCalls())
      if (other.index !== open.index) this.#settle(other, failures.handedOver(other.call));
  }

  /** Results that settle in one tick are recorded together: one fold, one save. */
  #settle(open: OpenCall, result: ToolResultPart, replacedByHook?: true, startedMs?: number): undefined {
    const { run } = this;
    if (run.stop.current?.type === 'lease-lost') return;
    const recorded = withAudits(result, run.checkpoint.approvals, open.call.args);
    const durationMs = startedMs === undefined ? 0 : run.engine.ports.clock.monotonicMs() - startedMs;
    reportResult(run, recorded, durationMs, replacedByHook);
    this.#settledNow.push({ open, result: recorded });
    if (this.#isFlushPlanned) return;
    this.#isFlushPlanned = true;
    void Promise.resolve().then(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushPlanned = false;
    if (this.#settledNow.length === 0) return;
    const settled = this.#settledNow;
    this.#settledNow = [];
    const { run } = this;
    const businessState = run.changedState();
    const tasks = endedFacts(
      run,
      settled.flatMap(({ open }) => this.#outcomes.get(open.index)?.ended ?? []),
    );
    const given = settled.flatMap(({ open }) => this.#outcomes.get(open.index)?.given ?? []);
    for (const task of tasks.tasks) this.#endedChildren.add(run.childId(task.index, task.step));
    const delegated = [...tasks.delegated, ...settled.flatMap(({ open }) => this.#endTask(open))];
    const takeover = this.#takeover;
    const from = run.agent.name;
    run.fold({
      type: 'results',
      results: settled.map(({ result }) => result),
      ...(takeover && { takeover: takeoverFacts(run.checkpoint, run.source.name, takeover) }),
      ...(delegated.length === 0 ? undefined : { delegated }),
      ...(given.length + tasks.tasks.length === 0 ? undefined : { tasks: [...given, ...tasks.tasks] }),
      ...(businessState === undefined ? undefined : { businessState }),
    });
    if (takeover !== undefined) {
      run.takeOver(takeover.agent);
      this.#takeover = undefined;
      const toolCallId = settled[0]?.result.toolCallId ?? '';
      run.events.emit('handoff', { from, to: takeover.agent.name, toolCallId });
    }
    run.background.goOn();
    this.#lastSave = run.writer.save().catch((error: unknown) => {
      this.#saveError ??= { error };
    });
  }

  /** The call has its result, from its sub-agent or without it: what that spent is counted in the same save, and its checkpoint goes behind it. */
  #endTask({ call, index }: OpenCall): readonly DelegatedInFlight[] {
    const { run } = this;
    // In the background it only begins now.
    const outcome = this.#outcomes.get(index);
    if (!isTaskCall(run, call) || outcome?.given !== undefined) return [];
    const checkpointId = run.childId(index);
    const known = run.checkpoint.delegatedInFlight.find((child) => child.checkpointId === checkpointId);
    if (this.#begun.has(index) || run.mayHaveBegun()) this.#endedChildren.add(checkpointId);
    const usage = outcome?.spent ?? known?.usage;
    return usage === undefined ? [] : [{ checkpointId, usage }];
  }

  /** A person stopped the run: calls that did not begin never will. */
  #cancelUnstarted(): void {
    this.#flush();
    if (this.run.stop.current?.type !== 'abort') return;
    for (const open of this.run.openCalls()) {
      const cancelled = this.#mayHaveBegun(open)
        ? failures.cancelledWhileRunning
        : failures.cancelledBeforeStart;
      this.#settle(open, cancelled(open.call));
    }
  }

  /** A steer redirects the run: nobody is handed over to any more, also when the run pauses and the words wait. */
  #steerHandoffs(): void {
    if (!this.run.input.isSteered || this.run.stop.current !== undefined) return;
    for (const open of this.run.openCalls()) {
      const isWaiting = this.#gated.some(({ index }) => index === open.index);
      if (isHandoff(this.run, open.call) && !isWaiting) this.#settle(open, failures.steeredAway(open.call));
    }
  }

  /** Here, or in a process that is dead. A call that somebody was asked about is marked before it begins. */
  #mayHaveBegun({ call, index }: OpenCall): boolean {
    const { checkpoint } = this.run;
    // It has no effect before its result is saved.
    if (isHandoff(this.run, call)) return false;
    const { toolCallId } = call;
    if (this.#begun.has(index) || checkpoint.startedToolCallIds.includes(toolCallId)) return true;
    const approval = approvalOfCall(checkpoint, toolCallId);
    if (approval?.question !== undefined) return true;
    return this.run.mayHaveBegun() && approval === undefined;
  }
}

export function reportResult(
  run: Run,
  { toolCallId, toolName, result, kind }: ToolResultPart,
  durationMs: number,
  replacedByHook?: true,
): void {
  if (kind === undefined) {
    run.events.emit('tool.done', {
      toolCallId,
      toolName,
      result,
      durationMs,
      ...(replacedByHook ? { replacedByHook } : undefined),
    });
    return;
  }
  const message = (result as { readonly error?: unknown }).error;
  run.events.emit('tool.error', {
    toolCallId,
    toolName,
    kind,
    error: errorEvent(new Error(String(message))),
    durationMs,
  });
}

/** Calls that can never run get their result with the response itself, so that they can never stand in the way of a resume. */
export function hopelessResults(run: Run, calls: readonly ToolCallPart[]): readonly ToolResultPart[] {
  return calls
    .filter((call) => call.invalidArgs !== undefined || !run.agent.tools.has(call.toolName))
    .map((call) => (call.invalidArgs === undefined ? failures.unknownTool(call) : failures.noJson(call)));
}
