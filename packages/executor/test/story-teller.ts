/** Plays a random story over one store, process by process, and notes every broken promise. */
import {
  LLMProviderError,
  PropagatingToolError,
  SessionAwaitingApprovalError,
  defineTool,
  isSDKError,
  lastStep,
  textOf,
  type AgentRun,
  type AgentStore,
  type ApprovalDecision,
  type Checkpoint,
  type Clock,
  type ExecutionResult,
  type JsonValue,
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type Tool,
  type ToolContext,
} from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, testPorts, transcriptProblems } from '@lousho/testing';
import { crashingStore, type CrashingStore } from '@lousho/testing/crash';
import { z } from 'zod';
import type { ExecuteOptions } from '../src/index.ts';
import { OneProcess } from './one-process.ts';
import type { PlannedProcess, Story, ToolKind } from './random-stories.ts';
import { need, RUN_ID, until } from './support.ts';

/** More than any story can need: each round decides something or ends a run. */
const MAX_ROUNDS = 60;
/** Longer than a lease: the next process may take over. */
const AFTER_A_CRASH_MS = 600_000;

export class StoryTeller {
  /** What should never happen and did, one sentence each. */
  readonly problems: string[] = [];
  /** Words that an acknowledged save held: they may never be lost. */
  readonly takenWords = new Set<string>();
  /** Model calls that were given up: counted without a response. */
  droppedCalls = 0;
  readonly #clock = manualClock();
  readonly #store: AgentStore = this.#watched(memoryStore({ ports: testPorts(this.#clock) }));
  /** How often each call began, by run, step and id. */
  readonly #begun = new Map<string, number>();
  readonly #recorded = new Set<string>();
  #savedResponses = 0;
  #inputCount = 0;
  #decisionCount = 0;
  #last: Checkpoint | undefined;
  #handle: AgentRun | undefined;

  constructor(readonly story: Story) {}

  async play(): Promise<Checkpoint> {
    this.#inputCount = 1;
    await this.#runProcess({ ...plainProcess, ...this.story.processes[0] }, 'same');
    for (const planned of this.story.processes.slice(1)) await this.#runProcess(planned, planned.asks);
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      await this.#runProcess(plainProcess, 'same');
      const { status, inputIds = [] } = this.#last ?? {};
      if (status === 'finished' && inputIds.includes(this.#current.inputId)) return need(this.#last);
    }
    throw new Error(`The story does not end: ${this.#last?.status}`);
  }

  /* ── Processes ── */

  get #current(): { readonly text: string; readonly inputId: string } {
    return { text: `words ${this.#inputCount}`, inputId: `msg-${this.#inputCount}` };
  }

  async #runProcess(planned: PlannedProcess, asks: PlannedProcess['asks']): Promise<void> {
    const stored = this.#last;
    if (asks === 'new') this.#inputCount += 1;
    const { text, inputId } = this.#current;
    const isRetry = stored?.status === 'in-progress' && isKnownAsRetry(stored, text);
    const withId = asks === 'same without id' && isRetry ? undefined : inputId;
    const isResume = asks === 'resume' && stored !== undefined;
    await this.#inProcess(planned, async (process, more) => {
      const input = isResume ? [] : text;
      const options = isResume ? more : { ...more, inputId: withId };
      this.#handle = planned.isStreamed ? process.stream(input, options) : undefined;
      return this.#handle === undefined ? process.send(input, options) : this.#handle.result;
    });
  }

  /** One process: asks once, then decides what waits, until there is nothing to do, an error, or its death. */
  async #inProcess(
    planned: PlannedProcess,
    ask: (process: OneProcess, more: Partial<ExecuteOptions>) => Promise<ExecutionResult>,
  ): Promise<void> {
    const crashing = crashingStore(this.#store, { point: planned.dies });
    const stopping = new AbortController();
    const process = new OneProcess({
      store: crashing.store,
      ports: this.#portsOf(crashing),
      provider: this.#model(planned, stopping),
      tools: this.#tools(stopping),
      options: {
        retry: { maxRetries: 0 },
        toolConcurrency: this.story.toolConcurrency,
        maxSteps: this.story.maxSteps,
      },
    });
    let isOver = false;
    const work = this.#askAndDecide(process, () => ask(process, { signal: stopping.signal })).finally(
      () => (isOver = true),
    );
    await until(() => isOver || crashing.isDead);
    if (crashing.isDead) await this.#clock.advance(AFTER_A_CRASH_MS);
    else await work;
  }

  #portsOf(process: CrashingStore): ReturnType<typeof testPorts> {
    const ports = testPorts(this.#clock);
    const machine = this.#clock;
    const clock: Clock = {
      wallMs: () => machine.wallMs(),
      monotonicMs: () => machine.monotonicMs(),
      setTimer: (callback, delayMs) => machine.setTimer(() => process.isDead || callback(), delayMs),
    };
    return { ...ports, clock };
  }

  async #askAndDecide(process: OneProcess, ask: () => Promise<ExecutionResult>): Promise<void> {
    let waiting = await this.#idsAfter(ask);
    for (let round = 0; waiting.length > 0 && round < MAX_ROUNDS; round += 1) {
      const id = need(waiting[this.#decisionCount % waiting.length]);
      waiting = await this.#idsAfter(() => process.decide(this.#decision(id)));
    }
  }

  /** What waits for a person; nothing when the run ended, was stopped, or failed in a way that stories have. */
  async #idsAfter(work: () => Promise<ExecutionResult>): Promise<readonly string[]> {
    try {
      return (await work()).approvalIds ?? [];
    } catch (error) {
      if (error instanceof SessionAwaitingApprovalError) return error.approvalIds;
      const isExpected =
        error instanceof LLMProviderError ||
        error instanceof PropagatingToolError ||
        isSDKError(error, 'LOUSHO_APPROVAL_DECIDED');
      if (!isExpected) this.problems.push(`It failed: ${String(error)}`);
      return [];
    }
  }

  #decision(id: string): ApprovalDecision {
    const { decisions } = this.story;
    const { approved, changes } = need(decisions[this.#decisionCount % decisions.length]);
    this.#decisionCount += 1;
    return { id, approved, ...(changes ? { args: { changed: this.#decisionCount } } : undefined) };
  }

  /* ── What is saved ── */

  #watched(base: AgentStore): AgentStore {
    const checkpoints = need(base.checkpoints);
    return {
      ...base,
      checkpoints: {
        ...checkpoints,
        saveIfLeased: async (id, checkpoint, owner, fence) => {
          const isSaved = (await checkpoints.saveIfLeased?.(id, checkpoint, owner, fence)) ?? false;
          if (isSaved && id === RUN_ID) this.#noteSave(checkpoint);
          return isSaved;
        },
      },
    };
  }

  #noteSave(checkpoint: Checkpoint): void {
    const { messages, heldInput, settledResults, runId, stepIndex } = checkpoint;
    this.#last = checkpoint;
    this.#savedResponses = Math.max(this.#savedResponses, responseCount(messages));
    for (const message of [...messages, ...heldInput])
      if (message.role === 'user') this.takenWords.add(textOf(message));
    const step = lastStep(messages);
    const placed = step?.calls.slice(0, step.answered) ?? [];
    for (const { toolCallId } of [...placed, ...settledResults])
      this.#recorded.add(`${runId}/${stepIndex}/${toolCallId}`);
  }

  /* ── The model ── */

  #model(planned: PlannedProcess, stopping: AbortController): LLMProvider {
    let count = 0;
    return {
      providerId: 'p',
      modelId: 'm',
      generate: async (request) => {
        this.problems.push(...transcriptProblems(request.messages));
        if (responseCount(request.messages) < this.#savedResponses)
          this.problems.push('A response that was saved is asked for again.');
        const call = count++;
        if (call === planned.modelFailsAt) throw new Error('The model is down.');
        if (call === planned.abortsInModelCall && !stopping.signal.aborted) {
          this.droppedCalls += 1;
          stopping.abort();
          if (request.signal.aborted) throw new Error('stopped');
          this.droppedCalls -= 1;
        }
        return this.#respond(request);
      },
    };
  }

  #respond({ messages }: LLMRequest): LLMResponse {
    const step = this.story.steps[responseCount(messages)] ?? [];
    const calls = step.map(({ kind, delay, id }) => ({
      type: 'tool-call' as const,
      toolCallId: `call_${id}`,
      toolName: kind,
      args: kind === 'picky' ? { to: 7 } : { delay },
    }));
    return {
      message: { role: 'assistant', content: calls.length > 0 ? calls : [{ type: 'text', text: 'done' }] },
      finishReason: calls.length > 0 ? 'tool-calls' : 'stop',
      usage: { inputTokens: 1, outputTokens: 1 },
    };
  }

  /* ── The tools ── */

  #tools(stopping: AbortController): readonly Tool[] {
    const tool = (kind: ToolKind, more: object = {}): Tool => {
      const defined = defineTool<z.ZodType, unknown>({
        name: kind,
        description: kind,
        input: kind === 'picky' ? z.object({ to: z.string() }) : z.looseObject({}),
        ...more,
        execute: (args, ctx) => this.#execute(kind, args as JsonValue, ctx, stopping),
      });
      return defined;
    };
    const plain = (['free', 'fails', 'picky', 'rejects', 'aborts', 'enqueues'] as const).map((kind) =>
      tool(kind),
    );
    return [
      ...plain,
      tool('gated', { needsApproval: true }),
      tool('never', { onInterrupted: 'never' }),
      tool('ask', { onInterrupted: 'ask' }),
    ];
  }

  async #execute(
    kind: ToolKind,
    args: JsonValue,
    { runId, step, toolCallId }: ToolContext,
    stopping: AbortController,
  ): Promise<JsonValue> {
    const place = `${runId}/${step}/${toolCallId}`;
    const times = (this.#begun.get(place) ?? 0) + 1;
    this.#begun.set(place, times);
    if (this.#recorded.has(place)) this.problems.push(`${kind} ${place} ran behind its recorded result.`);
    if (times > mostRuns[kind]) this.problems.push(`${kind} ${place} ran ${times} times.`);
    for (let tick = (args as { delay?: number }).delay ?? 0; tick > 0; tick -= 1) await Promise.resolve();
    if (kind === 'fails') throw new Error('kaput');
    if (kind === 'rejects' && times === 1) throw new PropagatingToolError('not now');
    if (kind === 'aborts' && times === 1) stopping.abort();
    if (kind === 'enqueues' && times === 1) this.#enqueue(place);
    return `${kind} ${times}`;
  }

  #enqueue(place: string): void {
    const text = `extra ${place}`;
    void this.#handle?.enqueue(text).joined.then((isJoined) => {
      if (isJoined && !this.takenWords.has(text))
        this.problems.push(`"${text}" joined and was never stored.`);
    });
  }
}

const plainProcess: PlannedProcess = {
  asks: 'same',
  dies: undefined,
  modelFailsAt: undefined,
  abortsInModelCall: undefined,
  isStreamed: false,
};

/** Over all processes. An `ask` that was cut runs once more with a person's yes. */
const mostRuns: { readonly [kind in ToolKind]: number } = {
  free: Infinity,
  fails: Infinity,
  rejects: Infinity,
  aborts: Infinity,
  enqueues: Infinity,
  picky: 0,
  nobody: 0,
  gated: 1,
  never: 1,
  ask: 2,
};

function responseCount(messages: Checkpoint['messages']): number {
  return messages.filter(({ role }) => role === 'assistant').length;
}

/** Without an id, the words that started the run are a retry, or the last that came behind them. */
function isKnownAsRetry(
  { messages, heldInput, runInput: { start, count } }: Checkpoint,
  text: string,
): boolean {
  const wordsOf = (list: Checkpoint['messages']): readonly string[] =>
    list.filter(({ role }) => role === 'user').map(textOf);
  const later = wordsOf([...messages.slice(start + count), ...heldInput]);
  return (count === 1 && wordsOf(messages.slice(start, start + 1))[0] === text) || later.at(-1) === text;
}
