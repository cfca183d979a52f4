/** The pause: the record in the inbox first, then the mark in the checkpoint, then whoever watches hears of it. */
import {
  ConfigurationError,
  canonicalJson,
  deepFreeze,
  jsonEqual,
  questionApprovalId,
  type ApprovalKind,
  type ApprovalRecord,
  type CheckpointApproval,
  type JsonValue,
  type PersonQuestion,
} from '@lousho/contract';
import { sha256 } from './agent-fingerprint.ts';
import { snapshotOf } from './approval-snapshot.ts';
import { questionOf } from './ask-question.ts';
import { fold } from './fold.ts';
import type { InnerPause } from './inner-pauses.ts';
import type { OpenCall } from './next-action.ts';
import { remoteFacts, type RemoteFacts } from './remote-calls.ts';
import type { Run } from './run.ts';

/** A call that waits for a person, with the arguments that the person sees. */
export interface GatedCall extends OpenCall {
  readonly kind: ApprovalKind;
  readonly args: JsonValue;
  /** Set when not the call itself waits, but one inside the sub-agent that it runs. */
  readonly inside?: InnerPause;
  /** Set when the tool asks, in the middle of its work. */
  readonly asked?: PersonQuestion;
}

/** @throws LOUSHO_CONFIG_MISSING_APPROVAL_STORE, and what the stores throw */
export async function pauseForApproval(run: Run, gated: readonly GatedCall[]): Promise<void> {
  const { approvals: inbox } = run;
  if (inbox === undefined) {
    throw new ConfigurationError('LOUSHO_CONFIG_MISSING_APPROVAL_STORE', {
      toolName: gated[0]?.call.toolName ?? '',
    });
  }
  const inOrder = [...gated].sort((a, b) => a.index - b.index);
  const asked = await Promise.all(inOrder.map((call) => askFor(run, call)));
  const businessState = run.changedState();
  const paused = {
    type: 'paused',
    approvals: asked,
    ...(businessState === undefined ? undefined : { businessState }),
  } as const;
  // A sub-agent waits in silence: its lead tells people, and hands their decisions down.
  if (run.task !== undefined) return run.commit(paused);
  const records = inOrder.map((call, index) => recordOf(run, call, asked[index] as CheckpointApproval));
  const snapshot = run.isEphemeral
    ? { snapshot: await snapshotOf(run, fold(run.checkpoint, paused)) }
    : undefined;
  // 1. The records, so that people can find them. Crash here: the run is in progress and asks again under the same ids.
  await Promise.all(records.map((record) => inbox.save(deepFreeze({ ...record, ...snapshot }))));
  // 2. The mark. Only from here on the ids mean anything, so only now are they shown.
  await run.commit(paused);
  for (const { id, kind, toolCallId, toolName, args, question, expiresAt, subagentPath } of records) {
    run.events.emit('approval.requested', {
      ...{ approvalId: id, kind, toolCallId, toolName, args },
      ...(subagentPath === undefined ? undefined : { subagentPath }),
      ...(question === undefined ? undefined : { question }),
      ...(expiresAt === undefined ? undefined : { expiresAt }),
    });
  }
  for (const approval of records) run.engine.telemetry.onApproval?.({ ...run.segmentInfo(), approval });
}

async function askFor(run: Run, gated: GatedCall): Promise<CheckpointApproval> {
  const { call, index, kind, args, inside, asked } = gated;
  const { toolCallId } = call;
  if (inside !== undefined) {
    // What the person sees, and what the tool gets back, is in the sub-agent's own checkpoint.
    const {
      args: _args,
      decision: _decision,
      state: _state,
      expiresAt: _expiresAt,
      ...approval
    } = inside.approval;
    // In the background it may have waited for long; people have their time from now on.
    return { ...approval, toolCallId, childId: inside.childId, ...timesOf(run, remoteFacts(inside.call)) };
  }
  return {
    id: asked === undefined ? run.approvalId(index) : nextQuestionId(run, gated),
    kind,
    toolCallId,
    argsHash: await argsHash(call.toolName, args),
    ...(jsonEqual(args, call.args) ? undefined : { args }),
    ...timesOf(run, remoteFacts(call)),
    ...asked,
  };
}

/** @param remote of a call elsewhere, which may expire there before it does here */
function timesOf(
  { engine }: Run,
  remote: Pick<RemoteFacts, 'expiresAt'> | undefined,
): Pick<CheckpointApproval, 'createdAt' | 'expiresAt'> {
  const nowMs = engine.ports.clock.wallMs();
  const { approvalTtlMs = Infinity } = engine;
  const thereMs = Date.parse(remote?.expiresAt ?? '');
  const expiresAtMs = Math.min(nowMs + approvalTtlMs, Number.isNaN(thereMs) ? Infinity : thereMs);
  return {
    createdAt: new Date(nowMs).toISOString(),
    ...(expiresAtMs === Infinity
      ? undefined
      : { expiresAt: new Date(Math.min(expiresAtMs, LAST_MOMENT_MS)).toISOString() }),
  };
}

/** Another one for each question of a call: each is decided once. The same again when a crash lost the mark. */
export function nextQuestionId(run: Run, { call, index }: OpenCall): string {
  const before = run.checkpoint.approvals.filter(
    ({ toolCallId, question, childId }) =>
      toolCallId === call.toolCallId && question !== undefined && childId === undefined,
  );
  return questionApprovalId(run.approvalId(index), before.length + 1);
}

/** A `Date` ends there; who says "never" with a huge number means no later. */
const LAST_MOMENT_MS = 8.64e15;

/** What the person saw is what runs. */
export function argsHash(toolName: string, args: JsonValue): Promise<string> {
  return sha256(canonicalJson([toolName, args]));
}

function recordOf(run: Run, gated: GatedCall, asked: CheckpointApproval): ApprovalRecord {
  const { runId, principal } = run.checkpoint;
  const { args, inside } = gated;
  const { toolCallId, toolName } = inside?.call ?? gated.call;
  return {
    id: asked.id,
    kind: asked.kind,
    ...(run.sessionId === undefined ? undefined : { sessionId: run.sessionId }),
    runId,
    agentName: run.checkpoint.agentName,
    ...{ toolCallId, toolName, args },
    ...(inside === undefined ? undefined : { subagentPath: pathOf(inside) }),
    ...(asked.kind === 'question' ? { question: questionOf(asked, args) } : undefined),
    ...(principal === undefined ? undefined : { principal }),
    createdAt: asked.createdAt,
    ...(asked.expiresAt === undefined ? undefined : { expiresAt: asked.expiresAt }),
    checkpointId: run.checkpointId,
    argsHash: asked.argsHash,
  };
}

/** With the way to it inside a remote agent. */
function pathOf({ path, call }: InnerPause): readonly string[] {
  return [...path, ...(remoteFacts(call)?.subagentPath ?? [])];
}
