/** One run's life as a test throws it around: sends, resumes, aborts, deaths and decisions, until it is over. */
import { PropagatingToolError, isSDKError, type Message, type Tool } from '@lousho/contract';
import { manualClock, mockModel, transcriptProblems, type MockModel } from '@lousho/testing';
import { crashingStore } from '@lousho/testing/crash';
import type { Agent, SendOptions } from '../../src/index.ts';
import { results } from './read.ts';
import { deferred, spyTool, type SpyTool } from './tools.ts';
import { letPass } from './wait.ts';
import type { World } from './world.ts';

export type ToolName = 'free' | 'gated' | 'flaky' | 'broken';
export type Deed =
  | { readonly type: 'send'; readonly isNew: boolean }
  | { readonly type: 'resume' }
  | { readonly type: 'decide'; readonly index: number; readonly approved: boolean }
  /** A person stops it at so many events. */
  | { readonly type: 'abort'; readonly atEvent: number }
  /** Its process dies at so many events. */
  | { readonly type: 'die'; readonly atEvent: number };

/** What a deed may be refused with; everything else is a defect. */
const FAIR_REFUSALS = [
  'LOUSHO_SESSION_AWAITING_APPROVAL',
  'LOUSHO_TOOL_PROPAGATED',
  'LOUSHO_INPUT_EMPTY',
] as const;

export class Life {
  readonly #world: World;
  readonly #sessionId: string;
  readonly #model: MockModel;
  readonly #spies: { readonly [Name in ToolName]: SpyTool };
  /** Each text that was sent, with whether it was surely accepted. */
  readonly #sent = new Map<string, boolean>();
  #isCalm = false;

  constructor(world: World, sessionId: string, steps: readonly (readonly ToolName[])[]) {
    this.#world = world;
    this.#sessionId = sessionId;
    const script = steps.map((names) => ({ toolCalls: names.map((name) => ({ name })) }));
    this.#model = mockModel([...script, 'Done.'], { answerBy: 'step', onExhausted: 'repeat-last' });
    const value = (_args: unknown, { toolCallId }: { readonly toolCallId: string }) => `${toolCallId} done`;
    this.#spies = {
      free: spyTool('free', value),
      gated: spyTool('gated', value, { needsApproval: true }),
      flaky: spyTool('flaky', (args, ctx, run) => {
        if (run % 2 === 1 && !this.#isCalm) throw new PropagatingToolError('not now');
        return value(args, ctx);
      }),
      broken: spyTool('broken', () => {
        throw new Error('always broken');
      }),
    };
  }

  async live(deed: Deed): Promise<void> {
    switch (deed.type) {
      case 'send':
        return this.#send(this.#agent(), deed.isNew);
      case 'resume':
        return this.#try(this.#agent().resume(this.#sessionId));
      case 'decide':
        return this.#decide(this.#agent(), deed.index, deed.approved);
      case 'abort': {
        const stop = new AbortController();
        const agent = this.#agent(countdown(deed.atEvent, () => stop.abort()));
        return this.#send(agent, false, { signal: stop.signal });
      }
      case 'die':
        return this.#die(deed.atEvent);
    }
  }

  /** Decides and resumes until there is nothing left to do. */
  async end(): Promise<void> {
    this.#isCalm = true;
    for (let turn = 0; turn < 40; turn += 1) {
      const agent = this.#agent();
      const run = (await agent.pending()).find(({ sessionId }) => sessionId === this.#sessionId);
      if (run === undefined) return;
      if (run.status === 'awaiting-approval') await this.#decide(agent, 0, turn % 2 === 0);
      else await this.#try(agent.resume(this.#sessionId));
    }
    throw new Error('It does not end.');
  }

  /** What is wrong with the life that is over, one sentence each. */
  async problems(): Promise<readonly string[]> {
    const stored = await this.#world.stored(this.#sessionId);
    if (stored === null) return [...this.#sent.values()].includes(true) ? ['What was sent is gone.'] : [];
    return [
      ...(stored.status === 'finished' ? [] : [`It is ${stored.status}.`]),
      ...transcriptProblems(stored.messages),
      ...this.#inputProblems(stored.messages),
      ...this.#effectProblems(stored.messages),
      ...(await this.#leftovers()),
    ];
  }

  #agent(onEvent?: () => void, world: Pick<World, 'agent'> = this.#world): Agent {
    return world.agent({
      provider: this.#model,
      tools: Object.values(this.#spies).map(({ tool }): Tool => tool),
      onEvent,
      maxSteps: 20,
    });
  }

  async #send(agent: Agent, isNew: boolean, options: SendOptions = {}): Promise<void> {
    await this.#try(this.#sending(agent, isNew, options));
  }

  /** The last input once more, or a new one. */
  async #sending(agent: Agent, isNew: boolean, options: SendOptions = {}): Promise<void> {
    const text = `input ${isNew ? this.#sent.size : Math.max(0, this.#sent.size - 1)}`;
    const inputId = text.replace(' ', '-');
    if (!this.#sent.has(text)) this.#sent.set(text, false);
    const { messages } = await agent.send(text, { ...options, sessionId: this.#sessionId, inputId });
    const isThere = messages.some((message) => message.content === text);
    if (isThere && options.signal === undefined) this.#sent.set(text, true);
  }

  async #decide(agent: Agent, index: number, approved: boolean): Promise<void> {
    const waiting = await agent.approvals.list({ sessionId: this.#sessionId });
    const request = waiting[index % Math.max(1, waiting.length)];
    if (request !== undefined) await this.#try(agent.approvals.resolve({ id: request.id, approved }));
  }

  /** Its last words are an event; then its store answers nothing, and its clock stands still until its lease has run out. */
  async #die(atEvent: number): Promise<void> {
    const process = this.#world.otherProcess(manualClock(this.#world.clock.wallMs()));
    const crashing = crashingStore(process.store);
    const last = deferred();
    const die = countdown(atEvent, () => {
      crashing.kill();
      last.resolve();
    });
    const agent = this.#agent(die, {
      agent: (config) => process.agent({ ...config, store: crashing.store }),
    });
    // It may end by itself before that many events.
    const sending = this.#sending(agent, false).catch(requireFair);
    await Promise.race([sending, last.promise]);
    crashing.kill();
    await this.#world.clock.advance(60_001);
  }

  async #try(deed: Promise<unknown>): Promise<void> {
    try {
      await letPass(this.#world.clock, deed);
    } catch (error) {
      requireFair(error);
    }
  }

  *#inputProblems(messages: readonly Message[]): Iterable<string> {
    const users = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
    for (const [text, isSure] of this.#sent) {
      const count = users.filter((content) => content === text).length;
      if (count > 1) yield `"${text}" is there ${count} times.`;
      if (isSure && count === 0) yield `"${text}" is lost.`;
    }
  }

  *#effectProblems(messages: readonly Message[]): Iterable<string> {
    const runsOf = (toolCallId: string): number =>
      Object.values(this.#spies).reduce(
        (sum, { runs }) => sum + runs.filter(({ ctx }) => ctx.toolCallId === toolCallId).length,
        0,
      );
    for (const { toolCallId, toolName, kind, result } of results(messages)) {
      const runs = runsOf(toolCallId);
      if (toolName === 'gated' && runs > 1) yield `The approved call ${toolCallId} ran ${runs} times.`;
      if (kind === 'rejected' && runs > 0) yield `The rejected call ${toolCallId} ran.`;
      if (kind === undefined && result !== `${toolCallId} done`)
        yield `${toolCallId} has the result of another call.`;
      if (kind === undefined && runs === 0) yield `${toolCallId} has a result and never ran.`;
      const says = JSON.stringify(result);
      if (kind === 'cancelled' && says.includes('did not run') && runs > 0)
        yield `${toolCallId} ran, and says that it did not.`;
      if (kind === 'interrupted' && toolName !== 'gated')
        yield `${toolCallId} was given up, and could have run again.`;
    }
  }

  async #leftovers(): Promise<readonly string[]> {
    const left = await this.#agent().approvals.list({ sessionId: this.#sessionId });
    return left.map(({ id }) => `The approval ${id} is left behind.`);
  }
}

function requireFair(error: unknown): void {
  if (!FAIR_REFUSALS.some((code) => isSDKError(error, code))) throw error;
}

/** Calls `act` at the given call, counted from 1. */
function countdown(at: number, act: () => void): () => void {
  let count = 0;
  return () => {
    count += 1;
    if (count === at) act();
  };
}
