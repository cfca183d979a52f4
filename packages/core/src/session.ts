/** `agent.session()`: one conversation, its turns, and what a person can do with it. */
import {
  assertSessionId,
  deepFreeze,
  turnCheckpointId,
  type AgentEvent,
  type AgentInput,
  type AgentRun,
  type ExecutionResult,
  type Message,
  type SessionRecord,
  type OptionNames,
} from '@lousho/contract';
import {
  executeWork,
  isInstructions,
  isOver,
  loadCheckpoint,
  requireLimits,
  streamWork,
  type ApplicationCall,
  type OrderPlan,
  refuseOption,
} from '@lousho/executor/wiring';
import { requireStore, type AgentParts } from './agent-config.ts';
import type { AgentSession, MessagesOptions, SessionOptions } from './agent-session.ts';
import type { AbortOptions, PendingRun, SendOptions } from './agent.ts';
import { decideInCode } from './approvals.ts';
import type { LiveRuns } from './live-runs.ts';
import { pendingOf } from './pending-runs.ts';
import { planInput } from './plan-run.ts';
import { saveFork, transcriptUpTo } from './session-fork.ts';
import { stepsOf, type SessionHistoryEntry } from './session-history.ts';
import { sessionParts } from './session-parts.ts';
import { clearSession, discardTurn } from './session-removal.ts';
import { ofSession, resumeTurn, takeInput } from './session-turns.ts';
import { loadTranscript } from './transcripts.ts';
import { requireAbortOptions, requireOptions } from './require-options.ts';
import { joinActiveTurn, whileActive } from './turn-policy.ts';

type TurnOptions = Omit<SendOptions, 'sessionId'>;

/** @throws synchronously LOUSHO_SESSION_ID_INVALID, LOUSHO_CONFIG_INVALID */
export function openSession(parts: AgentParts, live: LiveRuns, options: SessionOptions): AgentSession {
  requireSessionOptions(options);
  const own = options.store === undefined ? parts : withStore(parts, options);
  // Without a store the turns lie in memory of the agent, which then is where everything of the session is looked for.
  return new Session({ ...own, checkpoints: own.sessions.turns }, live, options, parts);
}

class Session implements AgentSession {
  readonly id: string;
  readonly #parts: AgentParts;
  readonly #agent: AgentParts;
  readonly #live: LiveRuns;
  readonly #options: SessionOptions;
  readonly #listeners = new Set<{ readonly listener: (event: AgentEvent) => void }>();

  /** @param agent without what the session has in place of it: what a fork is opened with */
  constructor(parts: AgentParts, live: LiveRuns, options: SessionOptions, agent: AgentParts) {
    this.#agent = agent;
    this.id = options.id;
    this.#parts = parts;
    this.#live = live;
    this.#options = options;
  }

  async send(input: AgentInput, options: TurnOptions = {}): Promise<ExecutionResult> {
    const plan = this.#plan(input, options);
    const decide = (result: ExecutionResult): Promise<ExecutionResult> => this.#decide(result, options);
    return joinActiveTurn(this.#parts.sessions, this.#options, plan, (isUnderWay) =>
      executeWork(this.#clock, (call) => isUnderWay(call.input, this.#take(plan, call, decide))),
    );
  }

  stream(input: AgentInput, options: TurnOptions = {}): AgentRun {
    const plan = this.#plan(input, options);
    return streamWork(this.#clock, (call) =>
      whileActive(this.#parts.sessions, this.id, { input: call.input, result: this.#take(plan, call) }),
    );
  }

  async resume(options: AbortOptions = {}): Promise<ExecutionResult | null> {
    requireAbortOptions(options);
    const result = await resumeTurn(this.#wiring, this.id, options);
    return result && this.#decide(result, options);
  }

  streamResume(options: AbortOptions = {}): AgentRun {
    requireAbortOptions(options);
    return streamWork(this.#clock, (call) => resumeTurn(this.#wiring, this.id, options, call));
  }

  async messages(options: MessagesOptions = {}): Promise<readonly Message[]> {
    requireOptions(options, { includePending: true });
    const record = await this.#transcript();
    const messages = options.includePending === true ? await this.#saidSoFar(record) : record.messages;
    return messages.filter((message) => message.role !== 'system' || !isInstructions(message));
  }

  async pending(): Promise<PendingRun | null> {
    const { turn } = await this.#transcript();
    const checkpointId = turnCheckpointId(this.id, turn);
    const stored = await loadCheckpoint(this.#parts.sessions.turns, checkpointId);
    return stored === null || isOver(stored) ? null : (pendingOf(checkpointId, stored) ?? null);
  }

  async history(): Promise<readonly SessionHistoryEntry[]> {
    const { messages } = await this.#transcript();
    return stepsOf(messages)
      .map(({ messageCount: _count, ...entry }) => deepFreeze(entry))
      .reverse();
  }

  async fork(options: {
    readonly fromStep: number;
    readonly newSessionId?: string | undefined;
  }): Promise<AgentSession> {
    requireOptions(options, { fromStep: true, newSessionId: true });
    const { fromStep, newSessionId } = options;
    if (newSessionId !== undefined) assertSessionId(newSessionId);
    const kept = transcriptUpTo(await this.#transcript(), fromStep);
    const id = await saveFork(this.#parts.sessions, kept, newSessionId, this.#clock);
    return openSession(this.#agent, this.#live, { ...this.#options, id });
  }

  discardPending(): Promise<boolean> {
    return discardTurn(this.#parts, this.id);
  }

  clear(): Promise<void> {
    return clearSession(this.#parts, this.id);
  }

  on(listener: (event: AgentEvent) => void): () => void {
    if (typeof listener !== 'function') refuseOption('listener', listener, 'a function');
    // One of its own each time: given twice, it ends twice.
    const own = { listener };
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  get #clock() {
    return this.#parts.engine.ports.clock;
  }

  get #wiring() {
    // Also in the middle of a turn nothing comes any more once it was ended.
    const listeners = [...this.#listeners].map((own) => (event: AgentEvent) => {
      if (this.#listeners.has(own)) own.listener(event);
    });
    return { parts: this.#parts, live: this.#live, limits: this.#options.limits, listeners };
  }

  /** What the agent's `approve` lets the turn come to: still a turn of this session, under its limits. */
  #decide(result: ExecutionResult, options: AbortOptions): Promise<ExecutionResult> {
    return decideInCode(this.#parts, this.#live, result, options, async (plan) =>
      ofSession(this.#wiring, await this.#transcript(), plan),
    );
  }

  /** @throws synchronously what `Agent.send` does for wrong options */
  #plan(input: AgentInput, options: TurnOptions): OrderPlan {
    if ('sessionId' in options)
      refuseOption('sessionId', options.sessionId, 'left out: the session has its id');
    return planInput(this.#parts, this.#live, input, { ...options, sessionId: this.id });
  }

  #take(
    plan: OrderPlan,
    call: ApplicationCall,
    decide?: (result: ExecutionResult) => Promise<ExecutionResult>,
  ): Promise<ExecutionResult> {
    return this.#live.while(call.stop, () =>
      takeInput({ ...this.#wiring, decide }, { ...plan, onStart: undefined }, call),
    );
  }

  async #saidSoFar({ turn }: SessionRecord): Promise<readonly Message[]> {
    const stored = await loadCheckpoint(this.#parts.sessions.turns, turnCheckpointId(this.id, turn));
    // Committed since the look before, or not begun yet.
    if (stored === null) return (await this.#transcript()).messages;
    const results = stored.settledResults.map((result): Message => ({ role: 'tool', content: [result] }));
    return deepFreeze([...stored.messages, ...results, ...stored.heldInput]);
  }

  #transcript(): Promise<SessionRecord> {
    return loadTranscript(this.#parts.sessions.transcripts, this.id);
  }
}

const everyOption: OptionNames<SessionOptions> = { id: true, turnPolicy: true, limits: true, store: true };

function requireSessionOptions(options: SessionOptions): void {
  requireOptions(options, everyOption, "an object with an id, for example { id: 'chat-7' }");
  assertSessionId(options.id);
  const { turnPolicy = 'wait', limits, store } = options;
  if (!['wait', 'queue', 'steer'].includes(turnPolicy))
    refuseOption('turnPolicy', turnPolicy, "'wait', 'queue' or 'steer'");
  if (limits !== undefined) requireLimits(limits);
  if (store !== undefined) requireStore(store);
}

/** The agent's parts with those of the session's own store in their place. */
function withStore(parts: AgentParts, { id, store = {} }: SessionOptions): AgentParts {
  const merged = {
    ...(parts.checkpoints === undefined ? undefined : { checkpoints: parts.checkpoints }),
    ...(parts.approvals === undefined ? undefined : { approvals: parts.approvals }),
    ...(parts.store?.sessions === undefined ? undefined : { sessions: parts.store.sessions }),
    ...store,
  };
  const known = parts.sessions.elsewhere.get(id);
  // All objects of one session know of each other's turns.
  const sessions = known?.store === store ? known.sessions : sessionParts(merged);
  // Whoever resumes or decides a turn of it through the agent finds the same transcript.
  const own = { checkpoints: merged.checkpoints, approvals: merged.approvals, sessions };
  parts.sessions.elsewhere.set(id, { ...own, store });
  return { ...parts, ...own };
}
