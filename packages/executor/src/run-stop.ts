/** Why a run must stop, if it must: a person aborted it, its process goes away, or its lease is lost. */
import { SDKError, type Clock } from '@lousho/contract';
import { builtinModule } from './builtin-module.ts';

export type Stop =
  /** A person stops the run: running calls may end, the others are cancelled. */
  | { readonly type: 'abort'; readonly reason: unknown }
  /** The process goes away: running calls may end, the others stay open for whoever resumes the run. */
  | { readonly type: 'shutdown' }
  /** The run is somebody else's now: nothing of it is recorded any more. */
  | { readonly type: 'lease-lost'; readonly error: unknown };

/** How long an aborted tool may take to end by itself before its call is given up. */
const ABORT_GRACE_MS = 1_000;

/** Node warns of a leak from eleven listeners of one signal on. */
const events = builtinModule<{ setMaxListeners(count: number, signal: AbortSignal): void }>('node:events');

export class RunStop {
  readonly #requested = new AbortController();
  readonly #unwanted = new AbortController();
  readonly #abandoned = new AbortController();
  #stop: Stop | undefined;
  #isSuspended = false;
  #isDisposed = false;
  /** Timers and listeners. */
  readonly #leftBehind: (() => void)[] = [];
  /** Stops of the runs that calls of this one wait for. */
  readonly #inner = new Set<RunStop>();

  constructor(readonly clock: Clock) {
    // As many as there are tools: each of them may listen.
    events?.setMaxListeners(0, this.#unwanted.signal);
  }

  /** Nothing new starts once there is one. */
  get current(): Stop | undefined {
    return this.#stop;
  }

  /** Aborts at the first reason to stop, whatever it is: for waits that nothing is lost by. */
  get requested(): AbortSignal {
    return this.#requested.signal;
  }

  /** For tools and models: aborts when what they do is wanted no more. A shutdown that still waits for them does not abort it. */
  get signal(): AbortSignal {
    return this.#unwanted.signal;
  }

  /** Aborts when even what is running is not waited for. */
  get abandoned(): AbortSignal {
    return this.#abandoned.signal;
  }

  abort(reason: unknown): void {
    // Whoever waits for a suspended run to come to rest waits no longer than for an aborted one.
    if (this.#isSuspended) this.#abandonIn(ABORT_GRACE_MS, reason);
    if (this.#stop !== undefined) return;
    this.#stop = { type: 'abort', reason };
    this.#requested.abort(reason);
    this.#unwanted.abort(reason);
    this.#abandonIn(ABORT_GRACE_MS, reason);
    for (const inner of this.#inner) inner.abort(reason);
  }

  loseLease(error: unknown): void {
    // Whatever was asked before: without the lease nothing can be recorded.
    this.#stop = { type: 'lease-lost', error };
    this.#abandon(error);
    for (const inner of this.#inner) inner.#leave();
  }

  /** Starts nothing new; what runs has `timeoutMs` to end. */
  shutDown(timeoutMs: number): void {
    this.#stop ??= { type: 'shutdown' };
    const reason = new SDKError('LOUSHO_SHUTDOWN', {});
    this.#requested.abort(reason);
    this.#abandonIn(timeoutMs, reason);
    for (const inner of this.#inner) inner.shutDown(timeoutMs);
  }

  /** The run around it comes to rest: what runs may end in its own time, the rest is for whoever goes on. */
  suspend(): void {
    if (this.#stop !== undefined) return;
    this.#stop = { type: 'shutdown' };
    this.#isSuspended = true;
    this.#requested.abort(new SDKError('LOUSHO_SHUTDOWN', {}));
    for (const inner of this.#inner) inner.suspend();
  }

  /** The stop of a run inside this one: it stops with it, and by itself. */
  inside(): RunStop {
    const inner = new RunStop(this.clock);
    this.#inner.add(inner);
    inner.#leftBehind.push(() => this.#inner.delete(inner));
    if (this.#stop?.type === 'abort') inner.abort(this.#stop.reason);
    else if (this.#stop !== undefined) inner.#leave();
    return inner;
  }

  /** The run around it is somebody else's now: what is stored stays as it is, and the lease is given back for whoever goes on. */
  #leave(): void {
    if (this.#stop?.type !== 'lease-lost') this.#stop = { type: 'shutdown' };
    this.#abandon(new SDKError('LOUSHO_SHUTDOWN', {}));
    for (const inner of this.#inner) inner.#leave();
  }

  /** Aborts with a caller's signal, until `dispose`. */
  follow(signal: AbortSignal | undefined): void {
    if (signal === undefined) return;
    const abort = (): void => this.abort(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    this.#leftBehind.push(() => signal.removeEventListener('abort', abort));
  }

  /** Until the time has passed or something must stop. */
  async sleep(delayMs: number): Promise<void> {
    let cancel: (() => void) | undefined;
    const timePassed = new Promise<void>((resolve) => {
      cancel = this.clock.setTimer(resolve, delayMs);
    });
    await unlessAborted(this.requested, timePassed);
    cancel?.();
  }

  /** Leaves no timer and no listener behind. */
  dispose(): void {
    this.#isDisposed = true;
    for (const cancel of this.#leftBehind.splice(0)) cancel();
  }

  /** Of an abort and a shutdown the earlier end counts. */
  #abandonIn(delayMs: number, reason: unknown): void {
    if (this.#isDisposed) return;
    this.#leftBehind.push(this.clock.setTimer(() => this.#abandon(reason), delayMs));
  }

  #abandon(reason: unknown): void {
    this.#requested.abort(reason);
    this.#unwanted.abort(reason);
    this.#abandoned.abort(reason);
  }
}

/** In place of a value that is waited for no more. */
export const givenUp: unique symbol = Symbol('given up');

/** What the promise gives, or `givenUp` as soon as the signal aborts: what comes later is dropped. */
export function unlessAborted<Value>(
  signal: AbortSignal,
  promise: Promise<Value>,
): Promise<Value | typeof givenUp> {
  return new Promise<Value | typeof givenUp>((resolve, reject) => {
    const forget = whenAborted(signal, () => resolve(givenUp));
    promise.then(
      (value) => {
        forget();
        resolve(value);
      },
      (error: unknown) => {
        forget();
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- passed on as it came
        reject(error);
      },
    );
  });
}

/** Who waits for a signal. It gets one listener for all of them: a signal is slow to add to, and warns of a leak from eleven on. */
const waitingFor = new WeakMap<AbortSignal, Set<() => void>>();

function whenAborted(signal: AbortSignal, giveUp: () => void): () => void {
  if (signal.aborted) giveUp();
  let waiting = waitingFor.get(signal);
  if (waiting === undefined) {
    const all = new Set<() => void>();
    waitingFor.set(signal, (waiting = all));
    signal.addEventListener('abort', () => all.forEach((call) => call()), { once: true });
  }
  waiting.add(giveUp);
  return () => waiting.delete(giveUp);
}
