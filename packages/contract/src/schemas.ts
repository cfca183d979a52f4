/**
 * The shapes of stored data, checked when it is read. They only accept or refuse: what is accepted is used as it was stored, so
 * fields that this release does not know come back.
 */
import { z } from 'zod';
import { isMessageList, isToolCall, isToolResult } from './message-shape.ts';

const timestamp = z.string();
const count = z.number().int().nonnegative();
const stringList = z.array(z.string());
/** Any JSON value, or no such field. (`z.unknown()` alone asks for the field.) */
const anyOrAbsent = z.unknown().optional();
const messageList = z.custom<readonly unknown[]>(isMessageList, 'not a list of messages');
const toolResult = z.custom<unknown>(isToolResult, 'not a tool result');

const principal = z.looseObject({ id: z.string() });
const approvalKind = z.enum(['tool', 'question', 'interrupted']);
const approvalQuestion = z.object({
  text: z.string(),
  options: stringList.optional(),
  allowFreeText: z.boolean().optional(),
});
const reachedLimit = z.object({ name: z.string(), max: z.number(), used: z.number() });
const backgroundTask = {
  taskId: z.string(),
  agent: z.string(),
  status: z.enum(['queued', 'running', 'awaiting-approval', 'finished', 'failed', 'cancelled']),
  elapsedMs: z.number().optional(),
  error: z.string().optional(),
  approvalId: z.string().optional(),
  toolName: z.string().optional(),
};
const runEnd = z.enum(['stop', 'length', 'content-filter', 'other', 'max-steps', 'limit']);

let made: ReturnType<typeof makeSchemas> | undefined;

/** Made when something stored is first read: it takes milliseconds, and an application starts without them. */
export function storedSchemas(): ReturnType<typeof makeSchemas> {
  return (made ??= makeSchemas());
}

function makeSchemas() {
  const usage = usageSchemas();
  return {
    runEnd,
    checkpoint: checkpointSchema(usage),
    approvalRecord: approvalRecordSchema(),
    sessionRecord: sessionRecordSchema(usage),
  };
}

type UsageSchemas = ReturnType<typeof usageSchemas>;

function usageSchemas() {
  const modelUsage = z.object({
    inputTokens: z.number(),
    outputTokens: z.number(),
    totalTokens: z.number(),
    cachedInputTokens: z.number(),
    cacheWriteTokens: z.number(),
    reasoningTokens: z.number(),
    modelCalls: count,
    costUsd: z.number().optional(),
    estimated: z.literal(true).optional(),
  });
  const runUsageSchema = modelUsage.extend({
    byModel: z.record(z.string(), modelUsage),
    delegated: modelUsage.extend({ runs: count }).optional(),
  });
  return { modelUsage, runUsage: runUsageSchema };
}

function checkpointSchema({ modelUsage, runUsage }: UsageSchemas) {
  const storedErrorSchema = z.object({
    name: z.string(),
    message: z.string(),
    code: z.string().optional(),
    retryable: z.boolean(),
    failedAt: timestamp.optional(),
  });
  const decisionSchema = z.object({
    approved: z.boolean(),
    source: z.enum(['person', 'callback', 'expiry']),
    by: z.string().optional(),
    note: z.string().optional(),
    args: anyOrAbsent,
    answer: z.string().optional(),
    decidedAt: timestamp,
  });
  const checkpointApprovalSchema = z.object({
    id: z.string(),
    kind: approvalKind,
    toolCallId: z.string(),
    argsHash: z.string(),
    args: anyOrAbsent,
    createdAt: timestamp,
    expiresAt: timestamp.optional(),
    decision: decisionSchema.optional(),
    childId: z.string().optional(),
    question: approvalQuestion.optional(),
    state: anyOrAbsent,
  });

  const storedTaskSchema = z.object({
    ...backgroundTask,
    step: count,
    index: count,
    isOver: z.literal(true).optional(),
  });
  const checkpointBase = z.object({
    version: count,
    runId: z.string(),
    agentName: z.string(),
    messages: messageList,
    stepIndex: count,
    usage: runUsage,
    spentBefore: runUsage.optional(),
    businessState: anyOrAbsent,
    runInput: z.object({ start: count, count }),
    heldInput: messageList,
    inputIds: stringList,
    settledResults: z.array(toolResult),
    startedToolCallIds: stringList,
    approvals: z.array(checkpointApprovalSchema),
    delegatedInFlight: z.array(z.object({ checkpointId: z.string(), usage: modelUsage })),
    backgroundTasks: z.array(storedTaskSchema).optional(),
    activeAgent: z.string().optional(),
    fingerprint: z
      .object({
        version: z.number(),
        hash: z.string(),
        model: z.string().optional(),
        tools: z.record(z.string(), z.string()),
        instructions: z.string(),
      })
      .optional(),
    runConfig: z.object({ ctx: z.unknown(), model: z.string().optional() }).optional(),
    principal: principal.optional(),
    metadata: z.record(z.string(), z.unknown()).optional(),
    forkedFrom: z.object({ sessionId: z.string(), step: count }).optional(),
    traceparent: z.string().optional(),
    savedAt: timestamp,
  });
  return z.discriminatedUnion('status', [
    checkpointBase.extend({
      status: z.literal('in-progress'),
      finishReason: z.literal('aborted').optional(),
      lastError: storedErrorSchema.optional(),
      attempts: count.optional(),
      startsWithoutProgress: count.optional(),
      parkedAt: timestamp.optional(),
    }),
    checkpointBase.extend({
      status: z.literal('awaiting-approval'),
      approvalId: z.string(),
      approvalIds: stringList,
    }),
    checkpointBase.extend({
      status: z.literal('finished'),
      finishReason: runEnd,
      limit: reachedLimit.optional(),
    }),
  ]);
}

function approvalRecordSchema() {
  return z.object({
    id: z.string(),
    kind: approvalKind,
    sessionId: z.string().optional(),
    runId: z.string(),
    agentName: z.string(),
    toolCallId: z.string(),
    toolName: z.string(),
    args: z.unknown(),
    question: approvalQuestion.optional(),
    subagentPath: stringList.optional(),
    principal: principal.optional(),
    createdAt: timestamp,
    expiresAt: timestamp.optional(),
    checkpointId: z.string(),
    argsHash: z.string(),
    snapshot: z
      .object({
        checkpoints: z.array(z.object({ checkpointId: z.string(), checkpoint: z.unknown() })),
        remainingToolCalls: z.array(z.custom<unknown>(isToolCall, 'not a tool call')).optional(),
      })
      .optional(),
  });
}

function sessionRecordSchema({ runUsage }: UsageSchemas) {
  return z.object({
    id: z.string(),
    revision: count,
    turn: count,
    messages: messageList,
    inputIds: stringList,
    businessState: anyOrAbsent,
    usage: runUsage,
    lastTurn: z
      .object({
        runId: z.string(),
        agentName: z.string(),
        activeAgent: z.string().optional(),
        stepIndex: count,
        usage: runUsage,
        runInput: z.object({ start: count, count }),
        finishReason: z.union([runEnd, z.literal('aborted')]),
        limit: reachedLimit.optional(),
        backgroundTasks: z.array(z.object(backgroundTask)).optional(),
      })
      .optional(),
    savedAt: timestamp,
  });
}
