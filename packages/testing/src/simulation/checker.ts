/** Watches a simulated world and names the first promise that is broken, at the moment at which it is. */
import type { Checkpoint, JsonValue, Lease } from '@lousho/contract';
import { callKey, Facts } from './facts.ts';
import type { StoreCallSeen } from './remote-store.ts';
import * as callers from './rules/caller-rules.ts';
import * as effects from './rules/effect-rules.ts';
import * as ends from './rules/end-rules.ts';
import * as stores from './rules/store-rules.ts';

export interface BrokenPromise {
  /** With its numbers in `docs/contract.md`. */
  readonly promise: string;
  readonly text: string;
}
type Rules<Seen> = { readonly [promise: string]: (facts: Facts, seen: Seen) => Iterable<string> };

const ofSaves: Rules<stores.Save> = {
  'F3 G14: only the holder saves': stores.onlyTheHolderSaves,
  'G15: nothing is lost': stores.nothingIsLost,
  'G1 G2 G18: states are whole': stores.statesAreWhole,
  'G1 G21: results are true': stores.resultsAreTrue,
  'G10: decisions stand': stores.decisionsStand,
  'G23: usage counts what was asked': stores.usageIsPlausible,
  'G28: sub-agents go on': stores.subAgentsGoOn,
};
const ofTakings: Rules<stores.Taking> = { 'L1 L7: fences grow': stores.fencesGrow };
const ofLoads: Rules<stores.Load> = { 'C4: loads are true': stores.loadsAreTrue };
const ofTools: Rules<effects.ToolStart> = {
  'G13 G14: only the holder acts': (facts, { process, ctx }) =>
    effects.onlyTheHolderActs(facts, { process, runId: ctx.runId }),
  'G3 G5: calls are open': effects.callsAreOpen,
  'G7 N1: calls begin once': effects.callsBeginOnce,
  'G8 G9: only approved calls begin': effects.onlyApprovedCallsBegin,
};
const ofModels: Rules<effects.ModelAsk> = {
  'G13 G14: only the holder acts': effects.onlyTheHolderActs,
  'G6: requests are valid': effects.requestsAreValid,
  'G4 G5: responses are asked for once': effects.responsesAreAskedOnce,
};
const ofCallers: Rules<callers.Told> = {
  'G27: errors are fair': callers.errorsAreFair,
  'G10: decisions are told truly': callers.decisionsAreToldTruly,
};
const ofEvents: Rules<callers.SavedEvent> = { 'G15: saves are told truly': callers.savesAreToldTruly };
const ofEnds: Rules<ends.WorldEnd> = {
  'G1 G2 G6: runs are over': ends.runsAreOver,
  'G18: inputs count once': ends.inputsCountOnce,
  'G15: results are kept': ends.resultsAreKept,
  'G23: usage is exact': ends.usageIsExact,
  'G12 G24 G28: nothing is left behind': ends.nothingIsLeftBehind,
};
export const LIVENESS = 'G16: everything comes to its end';
export const GOODBYE = 'G20: whoever has left does nothing more';
export const NO_CRASH = 'nobody crashes';

export class Checker {
  readonly facts = new Facts();
  #broken: BrokenPromise | undefined;

  /** The first one. */
  get broken(): BrokenPromise | undefined {
    return this.#broken;
  }

  break(promise: string, text: string): void {
    this.#broken ??= { promise, text };
  }

  /** A call of the store took effect. */
  landed(call: StoreCallSeen, result: unknown): void {
    const [id, second, third, fourth] = call.args as [string, unknown, unknown, number | undefined];
    const { facts } = this;
    switch (call.method) {
      case 'saveIfLeased':
        if (result !== true) return;
        return this.#saved({
          ...{ call, id, checkpoint: second as Checkpoint },
          lease: { owner: third as string, fence: fourth },
        });
      case 'save':
        return this.#saved({ call, id, checkpoint: second as Checkpoint });
      case 'load':
        return this.#judge(ofLoads, { call, id, found: (result as Checkpoint | null | undefined) ?? null });
      case 'delete':
        return facts.noteDelete(id);
      case 'acquireLease': {
        if (typeof result !== 'object' || result === null) return;
        const { fence } = result as Lease;
        const owner = second as string;
        this.#judge(ofTakings, { call, id, owner, fence });
        const run = facts.runOf(id);
        run.holder = { process: call.process, owner, fence };
        run.highestFence = Math.max(run.highestFence, fence);
        return;
      }
      case 'releaseLease': {
        const run = facts.runOf(id);
        const isItsOwn = run.holder?.owner === second && (third ?? run.holder?.fence) === run.holder?.fence;
        if (isItsOwn) run.holder = undefined;
      }
    }
  }

  /** Its process knows that it took effect. */
  acknowledged({ process, method, args }: StoreCallSeen): void {
    if (method !== 'saveIfLeased' && method !== 'save') return;
    const [id, { status, stepIndex }] = args as [string, Checkpoint];
    this.facts.noteAcknowledged(process.name, id, status, stepIndex);
  }

  toldOfSave(event: callers.SavedEvent): void {
    this.#judge(ofEvents, event);
  }

  toolStarted(start: effects.ToolStart): void {
    this.#judge(ofTools, start);
    const { process, ctx } = start;
    const call = this.facts.callOf(callKey(ctx));
    call.starts.push({ process, fence: this.facts.runById(ctx.runId)?.holder?.fence });
    call.keys.add(ctx.idempotencyKey);
  }

  toolEnded(start: effects.ToolStart, value: JsonValue): void {
    this.facts.callOf(callKey(start.ctx)).values.push(value);
  }

  modelAsked(ask: effects.ModelAsk): void {
    this.#judge(ofModels, ask);
    this.facts.modelOf(ask.runId).asked += 1;
  }

  told(told: callers.Told): void {
    if (callers.isRefusal(told.outcome)) this.facts.refused.add(told.op);
    this.#judge(ofCallers, told);
  }

  atTheEnd(end: ends.WorldEnd): void {
    this.#judge(ofEnds, end);
  }

  #saved(save: stores.Save): void {
    this.#judge(ofSaves, save);
    this.facts.noteSave(save.id, save.checkpoint);
  }

  #judge<Seen>(rules: Rules<Seen>, seen: Seen): void {
    if (this.#broken !== undefined) return;
    for (const [promise, rule] of Object.entries(rules))
      for (const text of rule(this.facts, seen)) this.break(promise, text);
  }
}
