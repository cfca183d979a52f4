/** One request to a remote agent until it is answered: a lost connection, a busy conversation and a restart are waited out. */
import { SDKError, type RemoteTask } from '@lousho/contract';
import { textOf } from './request-body.ts';
import { BodyTooLarge } from './responses.ts';

export type Reply =
  /** `undefined` where there is nothing to say. */
  | { readonly type: 'done'; readonly body: unknown }
  | { readonly type: 'refused'; readonly status: number; readonly code: string; readonly message: string };

export interface RoutesOptions {
  /** Its name, for errors. */
  readonly agent: string;
  /** Without a slash at its end. */
  readonly url: string;
  readonly headers: () => { readonly [name: string]: string } | Promise<{ readonly [name: string]: string }>;
  readonly fetch: typeof fetch;
}

interface Answer {
  readonly response: Response;
  readonly text: string;
}

/** No answer. `mostInARow`: how many of them are borne before it is given up. */
interface Unanswered {
  readonly type: 'unanswered';
  readonly error: SDKError;
  readonly mostInARow: number;
  readonly retryAfterMs?: number | undefined;
}

/** About eight minutes of a remote that is gone. */
const MOST_UNREACHED = 20;
/** The remote itself has tried again before it says that it failed. */
const MOST_FAILURES = 3;
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** What a remote asks for is heeded up to here. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;
/**
 * A request that is not answered by then is made again. What works for longer is joined or found busy; and a `fetch` may lose a request
 * without a word: that of Node 20.20 does, now and then, when the server dies, and its promise never settles.
 */
const ANSWER_WITHIN_MS = 60_000;
/** A connection that stood so long was one: platforms end those on which nothing is said for minutes. */
const CONTACT_MS = 30_000;
/** It says the whole conversation each time. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** Of servers in front of the agent, or of one that restarts. */
const passing: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);

export class RemoteRoutes {
  readonly agent: string;
  readonly #options: RoutesOptions;

  constructor(options: RoutesOptions) {
    this.agent = options.agent;
    this.#options = options;
  }

  /** Every request may be made again: none of them does twice what it does. @throws LOUSHO_REMOTE_FAILED, what `headers` throws */
  async ask(task: RemoteTask, method: 'GET' | 'POST', path: string, body?: object): Promise<Reply> {
    let inARow = 0;
    for (let attempt = 1; ; attempt += 1) {
      const startedMs = task.clock.monotonicMs();
      const reply = await this.#once(task, method, path, body);
      if (reply.type !== 'unanswered') return reply;
      const { error, mostInARow, retryAfterMs } = reply;
      if (task.signal.aborted) throw error;
      inARow = task.clock.monotonicMs() - startedMs >= CONTACT_MS ? 1 : inARow + 1;
      if (inARow > mostInARow) throw error;
      const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (inARow - 1), LONGEST_DELAY_MS);
      await task.pause(retryAfterMs ?? delayMs, attempt, error);
    }
  }

  /** For what matters only now. */
  async tryOnce(task: RemoteTask, method: 'POST', path: string): Promise<Reply | undefined> {
    const reply = await this.#once(task, method, path);
    return reply.type === 'unanswered' ? undefined : reply;
  }

  async #once(
    { signal, clock }: RemoteTask,
    method: 'GET' | 'POST',
    path: string,
    body?: object,
  ): Promise<Reply | Unanswered> {
    const headers = { ...(await this.#options.headers()), accept: 'application/json' };
    const sent =
      body === undefined
        ? { headers }
        : { headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const hangUp = new AbortController();
    const signals = AbortSignal.any([signal, hangUp.signal]);
    const timeOut = new DOMException(`No answer within ${ANSWER_WITHIN_MS} ms.`, 'TimeoutError');
    const cancel = clock.setTimer(() => hangUp.abort(timeOut), ANSWER_WITHIN_MS);
    try {
      // A moved agent is moved in the options: tokens are not carried to where somebody points to.
      const init = { method, signal: signals, redirect: 'manual' as const, ...sent };
      const asked = this.#answerTo(`${this.#options.url}/${path}`, init);
      return this.#read(await Promise.race([asked, rejectedBy(signals)]));
    } catch (cause) {
      if (cause === timeOut) return this.#unanswered('has no answer yet', Infinity, { cause });
      if (!(cause instanceof BodyTooLarge))
        return this.#unanswered('could not be reached', MOST_UNREACHED, { cause });
      hangUp.abort(cause);
      return { type: 'refused', status: 200, code: 'ANSWER_TOO_LARGE', message: cause.message };
    } finally {
      cancel();
    }
  }

  async #answerTo(address: string, init: RequestInit): Promise<Answer> {
    const response = await this.#options.fetch(address, init);
    return { response, text: await textOf(response, MAX_ANSWER_BYTES) };
  }

  #read({ response, text }: Answer): Reply | Unanswered {
    const { status } = response;
    const json = jsonIn(text);
    if (response.ok)
      return json === undefined && status !== 204
        ? this.#unanswered('answered with what is no JSON', MOST_FAILURES, { status })
        : { type: 'done', body: json };
    const { code, message } = errorIn(json);
    const more = { status, ...(code === '' ? undefined : { remoteCode: code }) };
    // It works on this very task, or a process that died holds it for a minute more.
    if (code === 'LOUSHO_SESSION_BUSY') return this.#unanswered('is busy', Infinity, more);
    const retryAfterMs = retryAfterOf(response);
    if (passing.has(status))
      return this.#unanswered('is not available', MOST_UNREACHED, { ...more, retryAfterMs });
    if (status >= 500) return this.#unanswered('failed', MOST_FAILURES, { ...more, retryAfterMs });
    return { type: 'refused', status, code: code === '' ? `HTTP_${status}` : code, message };
  }

  #unanswered(
    reason: string,
    mostInARow: number,
    {
      cause,
      retryAfterMs,
      ...details
    }: {
      readonly cause?: unknown;
      readonly retryAfterMs?: number | undefined;
      readonly status?: number;
      readonly remoteCode?: string;
    },
  ): Unanswered {
    const about = { agent: this.agent, reason, ...details };
    const error = new SDKError('LOUSHO_REMOTE_FAILED', about, cause === undefined ? {} : { cause });
    return { type: 'unanswered', error, mostInARow, retryAfterMs };
  }
}

/** Never resolves. `fetch` alone may not hear that it is to end. */
function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = () => reject(signal.reason as Error);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function errorIn(json: unknown): { readonly code: string; readonly message: string } {
  const { error } = (typeof json === 'object' && json !== null ? json : {}) as { readonly error?: unknown };
  const { code, message } = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  return {
    code: typeof code === 'string' ? code : '',
    message: typeof message === 'string' ? message : '',
  };
}

/** Seconds, or a date: then by the clock of whoever wrote it. */
function retryAfterOf({ headers }: Response): number | undefined {
  const said = headers.get('retry-after');
  if (said === null) return undefined;
  const ms = /^\d+$/.test(said.trim())
    ? Number(said) * 1_000
    : Date.parse(said) - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}
