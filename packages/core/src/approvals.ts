/** `agent.approvals`: what waits for a person, and the decision that lets its run go on. The checkpoint decides; the inbox finds. */
import {
  ConfigurationError,
  checkpointIdOfApproval,
  type ApprovalDecision,
  type ApprovalRecord,
  type ApprovalRequest,
  type ApprovalStore,
  type Checkpoint,
} from '@lousho/contract';
import {
  executePlan,
  findApproval,
  planDecision,
  streamPlan,
  type DecisionWiring,
} from '@lousho/executor/wiring';
import type { AgentParts } from './agent-config.ts';
import type { AbortOptions, Approvals } from './agent.ts';
import type { LiveRuns } from './live-runs.ts';

export function agentApprovals(parts: AgentParts, live: LiveRuns): Approvals {
  const wire = (decision: ApprovalDecision, { signal }: AbortOptions): DecisionWiring => {
    live.requireOpen();
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
    };
  };
  return {
    list: (options = {}) => listWaiting(parts, options.sessionId),
    get: (id) => findWaiting(parts, id),
    async resolve(decision, options = {}) {
      const result = await executePlan(await planDecision(wire(decision, options)));
      if (result === null) throw new Error('Invariant: a decision gave no result');
      return result;
    },
    streamResolve(decision, options = {}) {
      const wired = wire(decision, options);
      return streamPlan(() => planDecision(wired), parts.engine.ports.clock);
    },
  };
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
  const checkpoints = new CheckpointReader(parts);
  const waiting: ApprovalRequest[] = [];
  for (const record of records) if (await checkpoints.waitsOn(record)) waiting.push(requestOf(record));
  return waiting;
}

async function findWaiting(parts: AgentParts, id: string): Promise<ApprovalRequest | undefined> {
  if (typeof id !== 'string' || checkpointIdOfApproval(id) === undefined) return undefined;
  const record = await requireInbox(parts).load(id);
  return record && (await new CheckpointReader(parts).waitsOn(record)) ? requestOf(record) : undefined;
}

/** Loads each run once for all of its approvals. */
class CheckpointReader {
  readonly #loaded = new Map<string, Promise<Checkpoint | null | undefined>>();

  constructor(readonly parts: AgentParts) {}

  /** A record that its run does not wait on is a leftover: hidden. One whose run cannot be read is shown: deciding it says why. */
  async waitsOn(record: ApprovalRecord): Promise<boolean> {
    if (record.snapshot !== undefined) return true;
    const { checkpoints: store } = this.parts;
    if (store === undefined) return true;
    let loading = this.#loaded.get(record.checkpointId);
    if (loading === undefined)
      this.#loaded.set(record.checkpointId, (loading = store.load(record.checkpointId)));
    try {
      return findApproval((await loading) ?? null, record.id).type === 'open';
    } catch {
      return true;
    }
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
