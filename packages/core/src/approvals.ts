/** `agent.approvals`: what waits for a person, and the decision that lets its run go on. The checkpoint decides; the inbox finds. */
import {
  ConfigurationError,
  checkpointIdOfApproval,
  classifyCheckpointId,
  type ApprovalDecision,
  type ApprovalRecord,
  type ApprovalRequest,
  type ApprovalStore,
  type CheckpointStore,
  type ExecutionResult,
} from '@lousho/contract';
import {
  executePlan,
  findApproval,
  planDecision,
  refuseSealed,
  sealingKeyOf,
  streamPlan,
  type DecisionWiring,
  type OrderPlan,
} from '@lousho/executor/wiring';
import type { AgentParts } from './agent-config.ts';
import type { AbortOptions, Approvals } from './agent.ts';
import { decidePauses } from './approve.ts';
import type { LiveRuns } from './live-runs.ts';
import { requireAbortOptions, requireOptions } from './require-options.ts';
import { partsOf } from './session-parts.ts';
import { turnAt } from './session-turns.ts';

export function agentApprovals(parts: AgentParts, live: LiveRuns): Approvals {
  const resolve: Approvals['resolve'] = async (decision, options = {}) => {
    requireAbortOptions(options);
    const deciding = decide(wire(parts, live, decision, options));
    return live.during(deciding.then((result) => decideInCode(parts, live, result, options)));
  };
  return {
    async list(options = {}) {
      requireOptions(options, { sessionId: true });
      return listWaiting(parts, options.sessionId);
    },
    get: (id) => findWaiting(parts, id),
    resolve,
    answer: async (answer, options) => resolve({ ...answer, approved: true }, options),
    streamResolve(decision, options = {}) {
      requireAbortOptions(options);
      const wired = wire(parts, live, decision, options);
      const run = streamPlan(planDecision(wired), parts.engine.ports.clock);
      live.during(run.result).catch(ignore);
      return run;
    },
  };
}

/** What a session adds to the order. */
type AdaptPlan = (plan: OrderPlan) => Promise<OrderPlan>;

/** What the run comes to when the agent's `approve` has decided what it decides. */
export function decideInCode(
  parts: AgentParts,
  live: LiveRuns,
  result: ExecutionResult,
  options: AbortOptions,
  adapt?: AdaptPlan,
): Promise<ExecutionResult> {
  return decidePauses(result, {
    approve: parts.approve,
    find: (id) => findWaiting(parts, id),
    decide: async (decision) =>
      decide({ ...wire(parts, live, decision, options), decidedBy: 'callback' }, adapt),
  });
}

/** Nobody decided in time: a denial, and the run goes on when it was the last one open. @throws what `resolve` does */
export function denyExpired(parts: AgentParts, live: LiveRuns, id: string): Promise<ExecutionResult> {
  return decide({ ...wire(parts, live, { id, approved: false }, {}), decidedBy: 'expiry' });
}

/** @throws LOUSHO_SHUTDOWN, LOUSHO_CONFIG_MISSING_APPROVAL_STORE */
function wire(
  agent: AgentParts,
  live: LiveRuns,
  decision: ApprovalDecision,
  { signal }: AbortOptions,
): DecisionWiring {
  live.requireOpen();
  const parts = partsOfApproval(agent, (decision as ApprovalDecision | undefined)?.id);
  const inbox = requireInbox(parts);
  const { checkpoints: store, source, engine } = parts;
  return {
    decision,
    inbox,
    approvals: inbox,
    store,
    source,
    engine,
    signal,
    onStart: (stop) => live.add(stop),
    conversationOf: (checkpointId) => turnAt(parts, checkpointId),
  };
}

async function decide(wired: DecisionWiring, adapt?: AdaptPlan): Promise<ExecutionResult> {
  const plan = await planDecision(wired);
  const result = await executePlan(adapt === undefined ? plan : await adapt(plan));
  if (result === null) throw new Error('Invariant: a decision gave no result');
  return result;
}

/** A session may have a store of its own. */
function partsOfApproval(parts: AgentParts, id: unknown): AgentParts {
  const checkpointId = typeof id === 'string' ? checkpointIdOfApproval(id) : undefined;
  return checkpointId === undefined ? parts : partsOfRun(parts, checkpointId);
}

function partsOfRun(parts: AgentParts, checkpointId: string): AgentParts {
  const named = classifyCheckpointId(checkpointId);
  return named.kind === 'session' ? partsOf(parts, named.sessionId) : parts;
}

function ignore(): void {
  // Whoever reads the handle hears of it.
}

function requireInbox({ approvals }: AgentParts): ApprovalStore {
  if (approvals === undefined) throw new ConfigurationError('LOUSHO_CONFIG_MISSING_APPROVAL_STORE', {});
  return approvals;
}

async function listWaiting(
  parts: AgentParts,
  sessionId: string | undefined,
): Promise<readonly ApprovalRequest[]> {
  const records = await requireInbox(parts).list(sessionId === undefined ? {} : { sessionId });
  const isWaiting = await waitingIn(parts);
  const waiting: ApprovalRequest[] = [];
  // A sealed one is for those who have the key: nobody can see what he would decide.
  for (const record of records.filter((one) => sealingKeyOf(one) === undefined))
    if (await isWaiting(record)) waiting.push(requestOf(record));
  return waiting;
}

async function findWaiting(agent: AgentParts, id: string): Promise<ApprovalRequest | undefined> {
  const parts = partsOfApproval(agent, id);
  if (typeof id !== 'string' || checkpointIdOfApproval(id) === undefined) return undefined;
  const record = await requireInbox(parts).load(id);
  refuseSealed(record, { id, record: 'approval' });
  return record && (await isWaitedOn(parts.checkpoints, record)) ? requestOf(record) : undefined;
}

type IsWaiting = (record: ApprovalRecord) => boolean | Promise<boolean>;

/** From the headers of the paused runs, all at once, where the store gives them. Only what they do not explain is loaded: leftovers. */
async function waitingIn(parts: AgentParts): Promise<IsWaiting> {
  const { checkpoints: store } = parts;
  const headers = await store?.listHeaders?.({ status: 'awaiting-approval' });
  const lookUp: IsWaiting = (record) =>
    isWaitedOn(partsOfRun(parts, record.checkpointId).checkpoints, record);
  if (headers === undefined) return lookUp;
  const ids = new Set(
    headers.flatMap(({ header }) => (header?.status === 'awaiting-approval' ? header.approvalIds : [])),
  );
  return (record) => ids.has(record.id) || lookUp(record);
}

/** A record that its run does not wait on is a leftover: hidden. One whose run cannot be read is shown: deciding it says why. */
async function isWaitedOn(store: CheckpointStore | undefined, record: ApprovalRecord): Promise<boolean> {
  if (record.snapshot !== undefined || store === undefined) return true;
  try {
    return findApproval((await store.load(record.checkpointId)) ?? null, record.id).type === 'open';
  } catch {
    return true;
  }
}

function requestOf({
  checkpointId: _id,
  argsHash: _hash,
  snapshot: _snapshot,
  ...request
}: ApprovalRecord): ApprovalRequest {
  return request;
}
