/** One run whose calls wait for people, and what people, crashes and deploys do to it until it is over. */
import {
  SDKError,
  defineTool,
  type ApprovalDecision,
  type ApprovalRequest,
  type Checkpoint,
  type ErrorCode,
  type LLMRequest,
  type Tool,
} from '@lousho/contract';
import { mockModel, type MockModel } from '@lousho/testing';
import { crashingStore, type CrashPoint } from '@lousho/testing/crash';
import { z } from 'zod';
import type { Agent } from '../../src/index.ts';
import {
  ApprovalLog,
  OPTIONS,
  argsOf,
  callId,
  whoAnswers,
  type CallKind,
  type Given,
} from './approval-log.ts';
import { letPass, until } from './wait.ts';
import type { World } from './world.ts';

/** The agent that a process has after a deploy. `strict` refuses to go on with a run that another one began. */
export type Deploy = 'same' | 'drifted' | 'strict' | 'unequipped' | 'unstaffed';
/** For a question the same words mean: answer, decline, answer with the other option. */
export type Verdict = 'yes' | 'no' | 'changed';
export type WrongWay = 'unknown' | 'malformed' | 'decided' | 'args' | 'answer' | 'word';
export type Deed =
  | { readonly type: 'decide'; readonly pick: number; readonly verdict: Verdict; readonly where: Where }
  | { readonly type: 'resume'; readonly isSend: boolean; readonly where: Where }
  /** Two people decide one call at one moment, each his own way. */
  | { readonly type: 'race'; readonly pick: number }
  /** Two people decide two calls at one moment. */
  | { readonly type: 'together'; readonly pick: number; readonly verdict: Verdict }
  | { readonly type: 'wrong'; readonly pick: number; readonly way: WrongWay }
  | { readonly type: 'wait' };
interface Where {
  readonly deploy: Deploy;
  readonly dies: CrashPoint | undefined;
}
/** The calls of each response, whether approvals expire, and how many calls run at a time. */
export interface Plan {
  readonly steps: readonly (readonly CallKind[])[];
  readonly expires: boolean;
  readonly toolConcurrency: 1 | 'unbounded';
  /** Whether a person must agree to a handoff. */
  readonly gatesHandoffs: boolean;
}
type Process = ReturnType<World['otherProcess']>;
/** `died`: nobody knows how far it came. */
type End = 'done' | 'died' | SDKError;

const TTL_MS = 3_600_000;
const SAME: Where = { deploy: 'same', dies: undefined };

export class ApprovalLife {
  readonly log: ApprovalLog;
  readonly #world: World;
  readonly #other: Process;
  readonly #sessionId: string;
  readonly #plan: Plan;
  readonly #model: MockModel;
  #personCount = 0;

  constructor(
    { world, other }: { readonly world: World; readonly other: Process },
    sessionId: string,
    plan: Plan,
  ) {
    this.#world = world;
    this.#other = other;
    this.#sessionId = sessionId;
    this.#plan = plan;
    this.log = new ApprovalLog(plan.steps, plan.toolConcurrency, plan.gatesHandoffs);
    const script = plan.steps.map((kinds, at) => ({ tools }: LLMRequest) => ({
      toolCalls: kinds.map((kind, index) => ({
        name: kind === 'handoff' ? handoffAmong(tools) : kind,
        id: callId(index),
        args: argsOf(kind, at + 1, callId(index)),
      })),
    }));
    this.#model = mockModel([...script, 'Done.'], { answerBy: 'step' });
  }

  async live(deed: Deed): Promise<void> {
    switch (deed.type) {
      case 'decide':
        return this.#decide(deed.pick, deed.verdict, deed.where);
      case 'resume':
        return this.#goOn(deed.isSend, deed.where);
      case 'race':
        return this.#race(deed.pick);
      case 'together':
        return this.#together(deed.pick, deed.verdict);
      case 'wrong':
        return this.#wrong(deed.pick, deed.way);
      case 'wait':
        await this.#world.clock.advance(TTL_MS);
    }
  }

  /** Decides and resumes until it is over, and says what is wrong then. */
  async end(): Promise<readonly string[]> {
    for (let turn = 0; (await this.#stored())?.status !== 'finished'; turn += 1) {
      if (turn > 40) throw new Error('It does not end.');
      if ((await this.#waiting()).length > 0) await this.#decide(0, turn % 3 === 0 ? 'no' : 'yes', SAME);
      else await this.#goOn(turn % 2 === 0, SAME);
    }
    const left = await this.#other.store.approvals.list({ sessionId: this.#sessionId });
    return [
      ...this.#model.calls.flatMap(wrongHead),
      ...this.log.problemsOf((await this.#stored()) as Checkpoint),
      ...left.map(({ id }) => `The record ${id} is left behind.`),
    ];
  }

  /* ── Deeds ── */

  async #decide(pick: number, verdict: Verdict, where: Where): Promise<void> {
    const request = await this.#pick(pick);
    if (request === undefined) return;
    const given = await this.#given(request, verdict);
    const expected = await this.#refusalOf(where.deploy, given);
    const end = await this.#in(where, (agent) => agent.approvals.resolve(decisionOf(given)));
    this.#judge(`A ${verdict} by ${where.deploy}`, end, expected);
    this.#settle(given, end);
  }

  async #goOn(isSend: boolean, { deploy, dies }: Where): Promise<void> {
    const isWaiting = (await this.#waiting()).length > 0;
    const isNew = (await this.#stored()) === null;
    // The agent that begins the run is the one that others differ from.
    const where: Where = { deploy: isNew ? 'same' : deploy, dies };
    const expected = isWaiting ? 'LOUSHO_SESSION_AWAITING_APPROVAL' : await this.#refusalOf(where.deploy);
    const end = await this.#in(where, (agent) =>
      isSend || isNew
        ? agent.send('go', { sessionId: this.#sessionId, inputId: 'input-1' })
        : agent.resume(this.#sessionId),
    );
    this.#judge(`Going on by ${where.deploy}`, end, expected);
  }

  async #race(pick: number): Promise<void> {
    const request = await this.#pick(pick);
    if (request === undefined) return;
    await this.#atOnce([await this.#given(request, 'yes'), await this.#given(request, 'no')], 1);
  }

  async #together(pick: number, verdict: Verdict): Promise<void> {
    const [first, second] = await this.#waiting();
    if (first === undefined || second === undefined) return;
    const [one, two] = pick % 2 === 0 ? [first, second] : [second, first];
    await this.#atOnce([await this.#given(one, verdict), await this.#given(two, 'yes')], 2);
  }

  async #atOnce(both: readonly [Given, Given], atMost: number): Promise<void> {
    const processes = [this.#world, this.#other];
    const ends = await letPass(
      this.#world.clock,
      Promise.all(
        both.map((given, at) =>
          endOf(this.#agent('same', processes[at] as Process).approvals.resolve(decisionOf(given))),
        ),
      ),
    );
    const taken = ends.filter((end) => end === 'done').length;
    if (taken < 1 || taken > atMost) this.log.problems.push(`${taken} of two decisions at one moment count.`);
    for (const [at, end] of ends.entries()) {
      if (end !== 'done') this.#judgeLoser(end);
      this.#settle(both[at] as Given, end);
    }
  }

  #judgeLoser(end: End): void {
    const code = end instanceof SDKError ? end.code : end;
    if (code !== 'LOUSHO_APPROVAL_DECIDED' && code !== 'LOUSHO_SESSION_BUSY')
      this.log.problems.push(`The loser of two decisions hears ${code}.`);
  }

  /** What somebody gets wrong is told, and changes nothing. */
  async #wrong(pick: number, way: WrongWay): Promise<void> {
    const wrong = await this.#wrongDecision(pick, way);
    if (wrong === undefined) return;
    const end = await this.#in(SAME, (agent) => agent.approvals.resolve(wrong.decision));
    this.#judge(`A decision that is wrong (${way})`, end, wrong.code);
  }

  async #wrongDecision(
    pick: number,
    way: WrongWay,
  ): Promise<{ readonly decision: ApprovalDecision; readonly code: ErrorCode } | undefined> {
    if (way === 'unknown')
      return {
        decision: { id: `${this.#sessionId}.apr-zzzzzzzz-1-0`, approved: true },
        code: 'LOUSHO_APPROVAL_ORPHANED',
      };
    if (way === 'malformed')
      return { decision: { id: 'a click', approved: true }, code: 'LOUSHO_APPROVAL_NOT_FOUND' };
    const decided = this.log.given.filter(({ isSure }) => isSure);
    const old = decided[pick % Math.max(1, decided.length)];
    if (way === 'decided')
      return old && { decision: { id: old.id, approved: true }, code: 'LOUSHO_APPROVAL_DECIDED' };
    const request = await this.#pick(pick);
    if (request === undefined) return undefined;
    const { id, kind } = request;
    if (way === 'word') return { decision: { id, approved: 'yes' as never }, code: 'LOUSHO_CONFIG_INVALID' };
    // Too late is a denial, whatever else is wrong.
    if (this.#isLate(request)) return undefined;
    const isQuestion = kind === 'question';
    if (way === 'args' && request.toolName.startsWith('handoff_to_'))
      return { decision: { id, approved: true, args: 'much' }, code: 'LOUSHO_TOOL_ARGS_INVALID' };
    const field =
      way === 'args'
        ? {
            args: isQuestion ? { question: 'Another?' } : { n: 'much' },
            ...(isQuestion ? { answer: 'tea' } : {}),
          }
        : { answer: isQuestion ? 'coffee' : 'tea' };
    return { decision: { id, approved: true, ...field }, code: 'LOUSHO_TOOL_ARGS_INVALID' };
  }

  /* ── Decisions ── */

  async #given({ id, kind, toolCallId, ...request }: ApprovalRequest, verdict: Verdict): Promise<Given> {
    this.#personCount += 1;
    const count = this.#personCount;
    const answer = OPTIONS[verdict === 'changed' ? 1 : 0];
    const given: Given = {
      id,
      approved: verdict !== 'no',
      by: `person ${count}`,
      ...(count % 2 === 0 ? { note: `note ${count}` } : undefined),
      ...(verdict !== 'no' && kind === 'question' ? { answer } : undefined),
      // A no ignores them.
      ...(verdict !== 'yes' && kind !== 'question' ? { args: { n: -count } } : undefined),
      step: (await this.#stored())?.stepIndex ?? 0,
      toolCallId,
      isLate: this.#isLate(request),
      isSure: false,
    };
    // Noted before: its call may run before anybody hears that it counts.
    this.log.given.push(given);
    return given;
  }

  #settle(given: Given, end: End): void {
    if (end === 'done') given.isSure = true;
    else if (end !== 'died') this.log.given.splice(this.log.given.indexOf(given), 1);
  }

  #isLate({ expiresAt }: Pick<ApprovalRequest, 'expiresAt'>): boolean {
    return expiresAt !== undefined && this.#world.clock.wallMs() >= Date.parse(expiresAt);
  }

  async #pick(pick: number): Promise<ApprovalRequest | undefined> {
    const waiting = await this.#waiting();
    for (const { id } of waiting)
      if (this.log.given.some((given) => given.id === id && given.isSure))
        this.log.problems.push(`${id} was decided and waits again.`);
    return waiting[pick % Math.max(1, waiting.length)];
  }

  #waiting(): Promise<readonly ApprovalRequest[]> {
    return this.#agent('same', this.#other).approvals.list({ sessionId: this.#sessionId });
  }

  /** Why an agent of this deploy may not go on, or decide so. */
  async #refusalOf(deploy: Deploy, given?: Given): Promise<ErrorCode | undefined> {
    const stored = await this.#stored();
    if (stored === null || stored.status === 'finished') return undefined;
    if (deploy === 'strict') return 'LOUSHO_AGENT_DRIFT';
    if (deploy === 'same' || deploy === 'drifted') return undefined;
    if (deploy === 'unstaffed' && stored.activeAgent !== undefined) return 'LOUSHO_RESUME_TOOL_MISSING';
    const missing: CallKind = deploy === 'unequipped' ? 'mail' : 'handoff';
    const kinds = this.log.steps[stored.stepIndex - 1] ?? [];
    const at = stored.messages.findLastIndex(({ role }) => role === 'assistant');
    const needed = kinds.some((kind, index) => {
      const id = callId(index);
      const isRejected =
        (given?.toolCallId === id && (given.isLate || !given.approved)) ||
        stored.approvals.some(
          ({ toolCallId, decision }) => toolCallId === id && decision?.approved === false,
        );
      const hasResult =
        at + 1 + index < stored.messages.length ||
        stored.settledResults.some(({ toolCallId }) => toolCallId === id);
      return kind === missing && !isRejected && !hasResult;
    });
    return needed ? 'LOUSHO_RESUME_TOOL_MISSING' : undefined;
  }

  /* ── Processes ── */

  /** A refusal leaves everything as it was: the checkpoint, its saves, the inbox, the world outside. */
  async #in({ deploy, dies }: Where, work: (agent: Agent) => Promise<unknown>): Promise<End> {
    const before = await this.#everything();
    const { wasUnequipped, wasUnstaffed } = this.log;
    if (deploy === 'unequipped') this.log.wasUnequipped = true;
    if (deploy === 'unstaffed') this.log.wasUnstaffed = true;
    const crashing = crashingStore(this.#other.store, { point: dies });
    const agent = this.#agent(deploy, { ...this.#other, store: crashing.store as Process['store'] });
    let end: End | undefined;
    const working = endOf(work(agent)).then((value) => (end = value));
    await until(() => end !== undefined || crashing.isDead);
    if (crashing.isDead) {
      this.log.crashCount += 1;
      await this.#world.clock.advance(60_001);
      return 'died';
    }
    const reached = await working;
    if (!(reached instanceof SDKError)) return reached;
    Object.assign(this.log, { wasUnequipped, wasUnstaffed });
    const after = await this.#everything();
    if (after !== before) this.log.problems.push(`${reached.code} changed ${before} to ${after}.`);
    return reached;
  }

  #judge(what: string, end: End, expected: ErrorCode | undefined): void {
    if (end === 'died') return;
    const code = end instanceof SDKError ? end.code : undefined;
    if (code !== expected)
      this.log.problems.push(`${what}: ${code ?? 'done'} instead of ${expected ?? 'done'}.`);
  }

  async #everything(): Promise<string> {
    const { checkpoints, approvals } = this.#world.store;
    const records = await approvals.list({ sessionId: this.#sessionId });
    const stored = await this.#stored();
    // What was decided before a crash may still lie there: whoever comes next removes it.
    const waiting = stored?.status === 'awaiting-approval' ? stored.approvalIds : [];
    return JSON.stringify([
      stored,
      (await checkpoints.history(this.#sessionId)).length,
      records.filter(({ id }) => waiting.includes(id)),
      this.log.runs.length,
      this.#model.calls.length,
    ]);
  }

  #stored(): Promise<Checkpoint | null> {
    return this.#world.stored(this.#sessionId);
  }

  #agent(deploy: Deploy, process: Pick<Process, 'agent' | 'store'>): Agent {
    const all = this.#tools();
    const tools = deploy === 'unequipped' ? all.filter(({ name }) => name !== 'mail') : all;
    const instructions = deploy === 'same' ? 'Serve.' : `Serve as ${deploy}.`;
    const desk = {
      ...{ name: 'desk', description: 'Helps.', instructions: `${DESK}: ${instructions}`, tools },
      needsApproval: this.#plan.gatesHandoffs,
    };
    return process.agent({
      store: process.store,
      provider: this.#model,
      ...{ instructions, tools, handoffs: deploy === 'unstaffed' ? [] : [desk] },
      askQuestion: true,
      onAgentDrift: deploy === 'strict' ? 'error' : 'ignore',
      toolConcurrency: this.#plan.toolConcurrency,
      ...(this.#plan.expires ? { approvalTtlMs: TTL_MS } : undefined),
    });
  }

  #tools(): readonly Tool[] {
    return (['look', 'pay', 'mail'] as const).map((name) =>
      defineTool({
        name,
        description: name,
        input: z.object({ n: z.number() }),
        needsApproval: name !== 'look',
        execute: (args, ctx) => {
          this.log.note(ctx, args);
          return { done: args };
        },
      }),
    );
  }
}

const DESK = 'At the desk';

/** What of it a person says. */
function decisionOf({
  step: _step,
  toolCallId: _call,
  isLate: _late,
  isSure: _sure,
  ...decision
}: Given): ApprovalDecision {
  return decision;
}

function handoffAmong(tools: LLMRequest['tools']): string {
  return tools.find(({ name }) => name.startsWith('handoff_to_'))?.name ?? 'handoff_to_desk';
}

/** Whoever answers speaks with its own instructions. */
function wrongHead({ messages }: LLMRequest): readonly string[] {
  const [first] = messages;
  const isDesk = first?.role === 'system' && first.content.startsWith(DESK);
  const who = whoAnswers(messages);
  return (who === 'desk') === isDesk ? [] : [`${who ?? 'the agent'} has the instructions of somebody else.`];
}

async function endOf(work: Promise<unknown>): Promise<End> {
  try {
    await work;
    return 'done';
  } catch (error) {
    if (error instanceof SDKError) return error;
    throw error;
  }
}
