/**
 * The shapes of stored data, checked when it is read. They only accept or refuse: what is accepted is used as it was stored, so
 * fields that this release does not know come back.
 */
import { z } from 'zod';
import type { Message } from './messages.ts';

const timestamp = z.string();
const count = z.number().int().nonnegative();
const stringList = z.array(z.string());
/** Any JSON value, or no such field. (`z.unknown()` alone asks for the field.) */
const anyOrAbsent = z.unknown().optional();
const providerMetadata = z.record(z.string(), z.unknown()).optional();

const textPart = z.object({ type: z.literal('text'), text: z.string(), providerMetadata });
const reasoningPart = z.object({ type: z.literal('reasoning'), text: z.string(), providerMetadata });
const filePart = z.object({
  type: z.literal('file'),
  mediaType: z.string(),
  filename: z.string().optional(),
  data: z.discriminatedUnion('type', [
    z.object({ type: z.literal('data'), data: z.string() }),
    z.object({ type: z.literal('url'), url: z.string() }),
    z.object({ type: z.literal('reference'), reference: z.record(z.string(), z.string()) }),
    z.object({ type: z.literal('text'), text: z.string() }),
  ]),
  providerMetadata,
});
const toolCallPart = z.object({
  type: z.literal('tool-call'),
  toolCallId: z.string(),
  toolName: z.string(),
  args: z.unknown(),
  invalidArgs: z.string().optional(),
  providerExecuted: z.literal(true).optional(),
  providerMetadata,
});
const toolResultPart = z.object({
  type: z.literal('tool-result'),
  toolCallId: z.string(),
  toolName: z.string(),
  result: z.unknown(),
  isError: z.literal(true).optional(),
  kind: z.string().optional(),
  approval: z.object({ id: z.string(), approved: z.boolean(), decidedAt: timestamp }).optional(),
  providerMetadata,
});
const customPart = z.object({
  type: z.literal('custom'),
  kind: z.string(),
  data: anyOrAbsent,
  providerMetadata,
});

const assistantPart = z.discriminatedUnion('type', [
  textPart,
  reasoningPart,
  filePart,
  toolCallPart,
  toolResultPart,
  customPart,
]);
const messageSchema = z.discriminatedUnion('role', [
  z.object({ role: z.literal('system'), content: z.string(), providerMetadata }),
  z.object({
    role: z.literal('user'),
    content: z.union([z.string(), z.array(z.discriminatedUnion('type', [textPart, filePart]))]),
    providerMetadata,
  }),
  z.object({ role: z.literal('assistant'), content: z.array(assistantPart), providerMetadata }),
  z.object({ role: z.literal('tool'), content: z.tuple([toolResultPart]), providerMetadata }),
]);
/** Entries of a history share their messages: each is checked once. */
const checkedMessages = new WeakSet<object>();
const messageList = z.custom<readonly unknown[]>(
  (list) => Array.isArray(list) && list.every(isStoredMessage),
  'not a list of messages',
);

function isStoredMessage(value: unknown): boolean {
  if (typeof value === 'object' && value !== null && checkedMessages.has(value)) return true;
  if (!isMessage(value)) return false;
  checkedMessages.add(value);
  return true;
}

/** Whether it is a message that can be stored and read again. Looks anew each time: it is asked about values that may change. */
export function isMessage(value: unknown): value is Message {
  return messageSchema.safeParse(value).success;
}

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
const approvalKind = z.enum(['tool', 'question', 'interrupted']);
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
});
const principal = z.looseObject({ id: z.string() });

const checkpointBase = z.object({
  version: count,
  runId: z.string(),
  agentName: z.string(),
  messages: messageList,
  stepIndex: count,
  usage: runUsageSchema,
  businessState: anyOrAbsent,
  runInput: z.object({ start: count, count }),
  heldInput: messageList,
  inputIds: stringList,
  settledResults: z.array(toolResultPart),
  startedToolCallIds: stringList,
  approvals: z.array(checkpointApprovalSchema),
  delegatedInFlight: z.array(z.object({ checkpointId: z.string(), usage: modelUsage })),
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
export const runEndSchema = z.enum(['stop', 'length', 'content-filter', 'other', 'max-steps', 'limit']);
export const checkpointSchema = z.discriminatedUnion('status', [
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
    finishReason: runEndSchema,
    limit: z.object({ name: z.string(), max: z.number(), used: z.number() }).optional(),
  }),
]);

export const approvalRecordSchema = z.object({
  id: z.string(),
  kind: approvalKind,
  sessionId: z.string().optional(),
  runId: z.string(),
  agentName: z.string(),
  toolCallId: z.string(),
  toolName: z.string(),
  args: z.unknown(),
  question: z
    .object({ text: z.string(), options: stringList.optional(), allowFreeText: z.boolean().optional() })
    .optional(),
  subagentPath: stringList.optional(),
  principal: principal.optional(),
  createdAt: timestamp,
  expiresAt: timestamp.optional(),
  checkpointId: z.string(),
  argsHash: z.string(),
  snapshot: z
    .object({
      checkpoints: z.array(z.object({ checkpointId: z.string(), checkpoint: z.unknown() })),
      remainingToolCalls: z.array(toolCallPart).optional(),
    })
    .optional(),
});

export const sessionRecordSchema = z.object({
  id: z.string(),
  revision: count,
  turn: count,
  messages: messageList,
  inputIds: stringList,
  businessState: anyOrAbsent,
  usage: runUsageSchema,
  savedAt: timestamp,
});
