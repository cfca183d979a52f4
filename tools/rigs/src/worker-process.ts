/** One real process that works on a store: asked over IPC, stopped, continued and killed with signals. */
import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { StoreKind } from '../workers/open-store.mjs';
import { appendCrash, appendSignal, type LogLine, type Outcome } from './effect-log.ts';

export type ScriptedCall = {
  readonly name: 'work' | 'careful' | 'refund' | 'held' | 'poison';
  /** `bytes`: how long its result is. */
  readonly args: { readonly ms?: number; readonly gate?: string; readonly bytes?: number };
};

/** What a worker is started with; see `workers/agent-worker.mjs`. */
export interface WorkerJob {
  readonly worker: string;
  readonly storeKind: StoreKind;
  readonly storeFolder: string;
  readonly logPath: string;
  readonly agent: {
    readonly script: readonly (readonly ScriptedCall[])[];
    /** For conversations that begin with these words. */
    readonly scripts?: { readonly [words: string]: readonly (readonly ScriptedCall[])[] };
    readonly modelMs?: number;
    readonly lease?: { readonly ttlMs: number; readonly heartbeatMs: number };
    readonly toolConcurrency?: number;
  };
  /** It looks for interrupted runs all the time. */
  readonly recover?: { readonly intervalMs: number };
  /** How far the wall clock of its agent is ahead: what waits for half an hour is over for the next process. */
  readonly clockAheadMs?: number;
  /** Its tool `poison` kills it. */
  readonly mayKillItself?: boolean;
  /** A store that breaks its promises. */
  readonly storeFault?: 'no-fence';
  /** Whether the parent hears of each line that it logs. */
  readonly echo?: boolean;
  /** Whether a decision is held back, under its lease, until the gate `decision` is opened. */
  readonly holdDecisions?: boolean;
}

export type Action =
  | { readonly type: 'send' | 'once'; readonly inputId: string }
  | { readonly type: 'resume' | 'clear' }
  /** To a session. `isRetried`: under its id, so that it may be said again. */
  | {
      readonly type: 'say';
      readonly inputId: string;
      readonly isRetried: boolean;
      readonly turnPolicy: 'wait' | 'queue' | 'steer';
    }
  | { readonly type: 'fork'; readonly fromStep: number; readonly newSessionId: string }
  | {
      readonly type: 'decide';
      readonly approved: boolean;
      readonly index?: number;
      readonly approvalId?: string;
    }
  | { readonly type: 'look' };

type Message =
  | { readonly type: 'loaded' }
  | { readonly type: 'ready' }
  | { readonly type: 'line'; readonly line: LogLine }
  | { readonly type: 'holding'; readonly gate: string }
  | { readonly type: 'ended'; readonly op: string; readonly outcome: Outcome };

/** How an operation ended, or that its process died before it did. */
export type Ending = Outcome | { readonly type: 'died' };

const workerFile = fileURLToPath(new URL('../workers/agent-worker.mjs', import.meta.url));

/** Nobody stays behind, not even one that is stopped and does not notice that its parent is gone. */
const living = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

export class WorkerProcess {
  readonly job: WorkerJob;
  readonly #child: ChildProcess;
  readonly #listeners = new Set<(message: Message) => void>();
  #operationCount = 0;
  /** What it wrote to stderr: an exception that nobody caught. */
  #errors = '';
  #mayEnd = false;
  /** Resolves when the process is gone: reaped, so that nobody finds it any more. */
  readonly exited: Promise<void>;
  #isAlive = true;

  constructor(job: WorkerJob) {
    this.job = job;
    this.#mayEnd = job.mayKillItself ?? false;
    // No options of the process that runs the tests: this one is an application's.
    const env = { ...process.env };
    delete env['NODE_OPTIONS'];
    this.#child = fork(workerFile, [JSON.stringify(job)], {
      execArgv: [],
      env,
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    living.add(this.#child);
    this.#child.stderr?.on('data', (data: Buffer) => (this.#errors += data.toString()));
    this.#child.on('message', (message) => {
      for (const listener of this.#listeners) listener(message as Message);
    });
    this.exited = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        this.#isAlive = false;
        living.delete(this.#child);
        const isWanted = this.#mayEnd && (code === 0 || signal === 'SIGKILL');
        if (!isWanted) appendCrash(job.logPath, job.worker, `${signal ?? code}: ${this.#errors}`);
        resolve();
      });
    });
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** @throws when it dies first */
  loaded(): Promise<void> {
    return this.#message((message) => (message.type === 'loaded' ? true : undefined)).then(() => undefined);
  }

  /** Opens the store. Until then it has only loaded its code. */
  begin(): void {
    this.#send({ type: 'begin' });
  }

  /** @throws when it dies first */
  ready(): Promise<void> {
    return this.#message((message) => (message.type === 'ready' ? true : undefined)).then(() => undefined);
  }

  perform(session: string, action: Action): Promise<Ending> {
    const op = `${this.job.worker}-${(this.#operationCount += 1)}`;
    const ended = this.#message((message) =>
      message.type === 'ended' && message.op === op ? message.outcome : undefined,
    ).catch((): Ending => ({ type: 'died' }));
    this.#send({ type: 'perform', op, session, action });
    return ended;
  }

  /** The next line that fits; needs `echo`. @throws when it dies first */
  line(fits: (line: LogLine) => boolean): Promise<LogLine> {
    return this.#message((message) =>
      message.type === 'line' && fits(message.line) ? message.line : undefined,
    );
  }

  /** @throws when it dies first */
  holding(gate: string): Promise<void> {
    return this.#message((message) =>
      message.type === 'holding' && message.gate === gate ? true : undefined,
    ).then(() => undefined);
  }

  onLine(listener: (line: LogLine) => void): void {
    this.#listeners.add((message) => {
      if (message.type === 'line') listener(message.line);
    });
  }

  open(gate: string): void {
    this.#send({ type: 'open', gate });
  }

  stop(): void {
    this.#signal('SIGSTOP', 'worker.stopped');
  }

  continue(): void {
    this.#signal('SIGCONT', 'worker.continued');
  }

  async kill(): Promise<void> {
    this.#mayEnd = true;
    this.#signal('SIGKILL', 'worker.killed');
    await this.exited;
  }

  /** Says goodbye. */
  async end(): Promise<void> {
    this.#mayEnd = true;
    this.#send({ type: 'end' });
    await this.exited;
  }

  #signal(signal: NodeJS.Signals, kind: 'worker.stopped' | 'worker.continued' | 'worker.killed'): void {
    if (!this.#isAlive) return;
    appendSignal(this.job.logPath, this.job.worker, kind);
    this.#child.kill(signal);
  }

  #send(message: object): void {
    // One that was just killed takes no messages: its `exit` says so to whoever waits.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  #message<Value>(pick: (message: Message) => Value | undefined): Promise<Value> {
    return new Promise((resolve, reject) => {
      const listener = (message: Message): void => {
        const value = pick(message);
        if (value === undefined) return;
        this.#listeners.delete(listener);
        resolve(value);
      };
      this.#listeners.add(listener);
      void this.exited.then(() => {
        this.#listeners.delete(listener);
        reject(new Error(`Worker ${this.job.worker} died: ${this.#errors}`));
      });
    });
  }
}
