/** What the sessions of one agent share: where transcripts and turns lie, and which turns are under way. */
import type {
  AgentStore,
  ApprovalStore,
  CheckpointStore,
  ExecutionResult,
  SessionStore,
} from '@lousho/contract';
import { ephemeralCheckpoints, type ApplicationCall } from '@lousho/executor/wiring';
import { transcriptsOf } from './transcripts.ts';

export interface SessionParts {
  readonly transcripts: SessionStore;
  /** Where the turns' checkpoints lie. */
  readonly turns: CheckpointStore;
  /** Whether both die with the agent. */
  readonly isEphemeral: boolean;
  /** The newest turn of each session that this process executes or is about to, by session id. */
  readonly active: Map<string, ActiveTurn>;
  /** Of sessions with a store of their own, by session id. */
  readonly elsewhere: Map<string, OwnParts & { readonly store: AgentStore }>;
  readonly sweptUpTo: SweptTurns;
}

/** Sessions that one process has to do with at a time, with room. */
const MAX_SWEPT = 10_000;

/** Below which turn of a session this process knows that nothing is left. What it forgets is looked for again. */
class SweptTurns {
  readonly #turns = new Map<string, number>();

  note(sessionId: string, turn: number): void {
    this.#turns.delete(sessionId);
    this.#turns.set(sessionId, turn);
    const [oldest] = this.#turns.keys();
    if (this.#turns.size > MAX_SWEPT && oldest !== undefined) this.#turns.delete(oldest);
  }

  isSwept(sessionId: string, turn: number): boolean {
    return this.#turns.get(sessionId) === turn;
  }
}

/** What a session with a store of its own has in place of the agent's parts. */
export interface OwnParts {
  readonly checkpoints: CheckpointStore | undefined;
  readonly approvals: ApprovalStore | undefined;
  readonly sessions: SessionParts;
}

/** The parts with which a session is executed, resumed and decided, whichever object that is asked of. */
export function partsOf<Parts extends OwnParts>(parts: Parts, sessionId: string): Parts {
  const own = parts.sessions.elsewhere.get(sessionId);
  if (own === undefined) return parts;
  const { checkpoints, approvals, sessions } = own;
  return { ...parts, checkpoints, approvals, sessions };
}

export interface ActiveTurn {
  readonly input: ApplicationCall['input'];
  readonly result: Promise<ExecutionResult>;
}

export function sessionParts(store: AgentStore | undefined): SessionParts {
  const checkpoints = store?.checkpoints;
  return {
    transcripts: transcriptsOf(store),
    turns: checkpoints ?? ephemeralCheckpoints(),
    isEphemeral: checkpoints === undefined,
    active: new Map(),
    elsewhere: new Map(),
    sweptUpTo: new SweptTurns(),
  };
}
