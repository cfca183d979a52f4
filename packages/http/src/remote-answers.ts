/** What a remote agent's routes answer, read with suspicion: a service of somebody else may say anything. */
import {
  emptyUsage,
  textOf,
  type DelegatedUsage,
  type JsonValue,
  type Message,
  type ModelUsage,
  type ReachedLimit,
  type RemoteAnswer,
  type RemoteApproval,
  type RunEnd,
} from '@lousho/contract';

type Fields = { readonly [key: string]: unknown };

const everyEnd: { readonly [End in RunEnd]: true } = {
  stop: true,
  length: true,
  'content-filter': true,
  other: true,
  'max-steps': true,
  limit: true,
};

/** `undefined`: it is no result of a run. */
export function answerIn(body: unknown): Exclude<RemoteAnswer, { type: 'waits' }> | 'waits' | undefined {
  const { finishReason, text, limit } = fieldsOf(body);
  const usage = usageIn(body);
  if (finishReason === 'awaiting-approval') return 'waits';
  if (typeof finishReason !== 'string' || usage === undefined) return undefined;
  if (finishReason === 'aborted') return { type: 'stopped', usage };
  if (typeof text !== 'string' || !Object.hasOwn(everyEnd, finishReason)) return undefined;
  const reached = limitOf(limit);
  return {
    ...{ type: 'ended', text, finishReason: finishReason as RunEnd, usage },
    ...(reached === undefined ? undefined : { limit: reached }),
  };
}

function limitOf(value: unknown): ReachedLimit | undefined {
  const { name, max, used } = fieldsOf(value);
  return typeof name === 'string' && typeof max === 'number' && typeof used === 'number'
    ? { name: name as ReachedLimit['name'], max, used }
    : undefined;
}

export function usageIn(body: unknown): DelegatedUsage | undefined {
  const { usage } = fieldsOf(body);
  if (typeof usage !== 'object' || usage === null) return undefined;
  const byModel = Object.entries(fieldsOf(fieldsOf(usage).byModel));
  return {
    ...modelUsage(usage),
    byModel: Object.fromEntries(byModel.map(([modelId, spent]) => [modelId, modelUsage(spent)])),
  };
}

const { byModel: _byModel, ...noUsage } = emptyUsage;

/** Nobody can spend less than nothing. */
function modelUsage(value: unknown): ModelUsage {
  const given = fieldsOf(value);
  const count = (name: string): number => {
    const said = given[name];
    return typeof said === 'number' && Number.isFinite(said) && said > 0 ? said : 0;
  };
  const counts = Object.fromEntries(Object.keys(noUsage).map((name) => [name, count(name)]));
  return {
    ...noUsage,
    ...counts,
    ...(typeof given.costUsd === 'number' ? { costUsd: count('costUsd') } : undefined),
    ...(given.estimated === true ? { estimated: true as const } : undefined),
  };
}

/** Those that can be shown; what is none is left out. */
export function approvalsIn(body: unknown): readonly RemoteApproval[] {
  const { approvals } = fieldsOf(body);
  return Array.isArray(approvals) ? approvals.flatMap((one) => approvalOf(fieldsOf(one))) : [];
}

function approvalOf({
  id,
  kind,
  toolCallId,
  toolName,
  args = null,
  question,
  subagentPath,
  expiresAt,
}: Fields): readonly RemoteApproval[] {
  if (typeof id !== 'string' || typeof toolName !== 'string') return [];
  const asked = questionOf(question);
  return [
    {
      ...{ id, toolName, args: args as JsonValue },
      toolCallId: typeof toolCallId === 'string' ? toolCallId : id,
      // Without its words it can only be said yes or no to.
      kind: kind === 'interrupted' ? kind : kind === 'question' && asked !== undefined ? kind : 'tool',
      ...(kind === 'question' && asked !== undefined ? { question: asked } : undefined),
      ...(isTexts(subagentPath) ? { subagentPath } : undefined),
      ...(typeof expiresAt === 'string' ? { expiresAt } : undefined),
    },
  ];
}

function questionOf(value: unknown): RemoteApproval['question'] {
  const { text, options, allowFreeText } = fieldsOf(value);
  if (typeof text !== 'string') return undefined;
  return {
    text,
    ...(isTexts(options) ? { options } : undefined),
    ...(typeof allowFreeText === 'boolean' ? { allowFreeText } : undefined),
  };
}

/** Whether the conversation is there, and (with `words`) whether its user has said them. */
export function hasSaid(body: unknown, words?: string): boolean {
  const { messages } = fieldsOf(body);
  if (!Array.isArray(messages)) return false;
  return messages.some((message: unknown) => {
    const { role, content } = fieldsOf(message);
    if (role !== 'user' || (typeof content !== 'string' && !Array.isArray(content))) return false;
    return words === undefined || textOf(message as Message) === words;
  });
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
