/** What model calls cost, in tokens, calls and money; and how it adds up. */
import { deepFreeze } from './freeze.ts';
import { objectOf } from './json.ts';

export interface TokenUsage {
  /** All input tokens, cached ones included. */
  readonly inputTokens: number;
  /** All output tokens, reasoning included. */
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** The part of `inputTokens` read from the provider's cache. */
  readonly cachedInputTokens: number;
  /** The part of `inputTokens` written to the provider's cache. */
  readonly cacheWriteTokens: number;
  /** The part of `outputTokens` spent on reasoning. */
  readonly reasoningTokens: number;
}
export interface ModelUsage extends TokenUsage {
  readonly modelCalls: number;
  /** Absent as soon as one call's cost is unknown. */
  readonly costUsd?: number;
  /** Some call reported no usage, and we counted characters instead. */
  readonly estimated?: true;
}
/** Totals of a run: every model call that was made, once, delegated ones included. */
export interface RunUsage extends ModelUsage {
  readonly byModel: { readonly [modelId: string]: ModelUsage };
  /** The part that sub-agents spent, those below them included. `runs`: tasks that this run itself gave. */
  readonly delegated?: ModelUsage & { readonly runs: number };
}
/** What one sub-agent spent, by itself and through its own sub-agents. */
export type DelegatedUsage = ModelUsage & { readonly byModel?: RunUsage['byModel'] };

const noTokens: ModelUsage = {
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  modelCalls: 0,
};
export const emptyUsage: RunUsage = deepFreeze({ ...noTokens, byModel: {} });

/** The totals with one more model call. */
export function addModelCall(usage: RunUsage, modelId: string, call: ModelUsage): RunUsage {
  return deepFreeze({
    ...sumUsage(usage, call),
    byModel: withModel(usage.byModel, modelId, call),
    ...(usage.delegated === undefined ? {} : { delegated: usage.delegated }),
  });
}

/** The totals with what one sub-agent spent. */
export function addDelegated(usage: RunUsage, child: DelegatedUsage): RunUsage {
  let { byModel } = usage;
  for (const [modelId, spent] of Object.entries(child.byModel ?? {}))
    byModel = withModel(byModel, modelId, spent);
  const before = usage.delegated ?? { ...noTokens, runs: 0 };
  return deepFreeze({
    ...sumUsage(usage, child),
    byModel,
    delegated: { ...sumUsage(before, child), runs: before.runs + 1 },
  });
}

/** The totals of two runs, one after the other. */
export function addRun(usage: RunUsage, run: RunUsage): RunUsage {
  let { byModel } = usage;
  for (const [modelId, spent] of Object.entries(run.byModel)) byModel = withModel(byModel, modelId, spent);
  const delegated = [usage.delegated, run.delegated].filter((part) => part !== undefined);
  const [first, second] = delegated;
  return deepFreeze({
    ...sumUsage(usage, run),
    byModel,
    ...(first === undefined
      ? undefined
      : {
          delegated:
            second === undefined ? first : { ...sumUsage(first, second), runs: first.runs + second.runs },
        }),
  });
}

export function sumUsage(a: ModelUsage, b: ModelUsage): ModelUsage {
  const costUsd = knownSum(costOf(a), costOf(b));
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    totalTokens: a.totalTokens + b.totalTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    modelCalls: a.modelCalls + b.modelCalls,
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(a.estimated === true || b.estimated === true ? { estimated: true as const } : {}),
  };
}

function withModel(byModel: RunUsage['byModel'], modelId: string, spent: ModelUsage): RunUsage['byModel'] {
  const before = Object.hasOwn(byModel, modelId) ? byModel[modelId] : undefined;
  const after = before === undefined ? sumUsage(noTokens, spent) : sumUsage(before, spent);
  return objectOf([...Object.entries(byModel).filter(([id]) => id !== modelId), [modelId, after]]);
}

/** Nothing spent costs nothing; a spend without a price has an unknown cost, also one of old data that counted tokens only. */
function costOf(usage: ModelUsage): number | undefined {
  return usage.costUsd ?? (usage.modelCalls === 0 && usage.totalTokens === 0 ? 0 : undefined);
}

function knownSum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b;
}
