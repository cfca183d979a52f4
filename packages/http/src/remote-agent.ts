/** A sub-agent that works elsewhere, behind the routes of `createAgentRoutes`: what a task comes to there, however often it has to be asked. */
import {
  ConfigurationError,
  SDKError,
  requireKnownOptions,
  type ApprovalDecision,
  type ErrorCode,
  type RemoteAgent,
  type RemoteAnswer,
  type RemoteTask,
  type SubAgent,
} from '@lousho/contract';
import { answerIn, approvalsIn, hasSaid, usageIn } from './remote-answers.ts';
import { RemoteRoutes, type Reply } from './remote-routes.ts';

export interface RemoteAgentOptions {
  readonly name: string;
  /** When to use it; the lead's model reads this. */
  readonly description: string;
  /** Where the routes are, with their `basePath`. */
  readonly url: string;
  /** With every request. A function is asked each time, for what expires. What it throws rejects the lead's run, which can be resumed. */
  readonly headers?: RemoteHeaders | (() => RemoteHeaders | Promise<RemoteHeaders>) | undefined;
  /** Default: that of the platform. */
  readonly fetch?: typeof fetch | undefined;
}
type RemoteHeaders = { readonly [name: string]: string };

/** For `subagents`. @throws synchronously LOUSHO_CONFIG_INVALID */
export function remoteAgent(options: RemoteAgentOptions): SubAgent {
  const { name, description, url, headers, fetch: given } = requireOptions(options);
  const routes = new RemoteRoutes({
    ...{ agent: name, url: url.replace(/\/+$/, '') },
    headers: typeof headers === 'function' ? headers : () => headers ?? {},
    // Looked up with each request: a platform may replace it.
    fetch: given ?? ((input, init) => fetch(input, init)),
  });
  return { name, description, remote: new AgentBehindRoutes(routes) };
}

function requireOptions(options: RemoteAgentOptions): RemoteAgentOptions {
  requireKnownOptions<RemoteAgentOptions>('', options, {
    name: true,
    description: true,
    url: true,
    headers: true,
    fetch: true,
  });
  const { url, headers, fetch: given } = options;
  if (typeof url !== 'string' || !/^https?:/.test(url) || !URL.canParse(url))
    refuse('url', url, 'an address that begins with http:// or https://');
  if (headers !== undefined && headers !== null && !['object', 'function'].includes(typeof headers))
    refuse('headers', headers, 'an object with texts, or a function that gives one');
  if (given !== undefined && typeof given !== 'function') refuse('fetch', given, 'a function');
  return options;
}

function refuse(option: string, got: unknown, want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
}

/** Somebody decided there, or nobody waits there any more: what the task has come to is looked at. */
const decidedThere: ReadonlySet<string> = new Set<ErrorCode>([
  'LOUSHO_APPROVAL_DECIDED',
  'LOUSHO_APPROVAL_ORPHANED',
  'LOUSHO_APPROVAL_NOT_FOUND',
  // Arguments that do not fit there: it still waits, and people are asked again.
  'LOUSHO_TOOL_ARGS_INVALID',
]);

/** A pause whose calls were decided before they could be read is looked at again, so often. */
const MAX_LOOKS = 5;
const LOOK_AGAIN_MS = 500;

class AgentBehindRoutes implements RemoteAgent {
  readonly #routes: RemoteRoutes;

  constructor(routes: RemoteRoutes) {
    this.#routes = routes;
  }

  async work(task: RemoteTask): Promise<RemoteAnswer> {
    let said: Reply | undefined;
    for (const decision of task.decisions) said = await this.#tell(task, decision);
    for (let look = 1; ; look += 1) {
      const answer = await this.#answerOf(task, said ?? (await this.#send(task)));
      if (answer !== undefined) return answer;
      const why = this.#failed('waits for a person, and does not say for what');
      if (look === MAX_LOOKS) throw why;
      await task.pause(LOOK_AGAIN_MS, look, why);
      said = undefined;
    }
  }

  async stop(task: RemoteTask) {
    const reply = await this.#routes.tryOnce(task, 'POST', `sessions/${task.sessionId}/stop`);
    return reply?.type === 'done' ? usageIn(reply.body) : undefined;
  }

  /** `undefined`: it changed nothing. Told again after a crash, it has been decided. */
  async #tell(task: RemoteTask, { id, ...decision }: ApprovalDecision): Promise<Reply | undefined> {
    const reply = await this.#routes.ask(task, 'POST', `approvals/${encodeURIComponent(id)}`, decision);
    return reply.type === 'refused' && decidedThere.has(reply.code) ? undefined : reply;
  }

  /** Under one input id: given, or looked at again. */
  async #send(task: RemoteTask): Promise<Reply> {
    const { sessionId, inputId, prompt } = task;
    await this.#requireKnown(task);
    return this.#routes.ask(task, 'POST', `sessions/${sessionId}/messages`, { input: prompt, inputId });
  }

  /** Removed there, it would begin anew as if nothing had been done. */
  async #requireKnown(task: RemoteTask): Promise<void> {
    const { knownThere, sessionId, prompt } = task;
    if (knownThere === 'nothing') return;
    const reply = await this.#routes.ask(task, 'GET', `sessions/${sessionId}/messages`);
    if (reply.type === 'refused') throw this.#refusal(reply);
    if (!hasSaid(reply.body, knownThere === 'task' ? prompt : undefined))
      throw this.#failed('does not know this task any more: its conversation was removed there');
  }

  /** `undefined`: it waits, and what for was decided before it could be read. */
  async #answerOf(task: RemoteTask, reply: Reply): Promise<RemoteAnswer | undefined> {
    if (reply.type === 'refused' && reply.code !== 'LOUSHO_SESSION_AWAITING_APPROVAL')
      throw this.#refusal(reply);
    const answer = reply.type === 'refused' ? 'waits' : answerIn(reply.body);
    if (answer === undefined) throw this.#failed('gave an answer that is none');
    if (answer !== 'waits') return answer;
    const list = await this.#routes.ask(task, 'GET', `approvals?sessionId=${task.sessionId}`);
    if (list.type === 'refused') throw this.#refusal(list);
    const approvals = approvalsIn(list.body);
    return approvals.length === 0 ? undefined : { type: 'waits', approvals };
  }

  #refusal({ status, code, message }: Extract<Reply, { type: 'refused' }>): SDKError {
    const reason = message === '' ? 'refused' : `refused: ${message.replace(/\.$/, '')}`;
    return this.#failed(reason, { status, remoteCode: code });
  }

  #failed(reason: string, more: { readonly status?: number; readonly remoteCode?: string } = {}): SDKError {
    return new SDKError('LOUSHO_REMOTE_FAILED', { agent: this.#routes.agent, reason, ...more });
  }
}
