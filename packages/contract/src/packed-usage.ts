/** What a run has spent, as its log keeps it: every save writes all of it, so nothing in it has a name. */
import { objectOf, type JsonValue } from './json.ts';
import type { ModelUsage, RunUsage } from './usage.ts';

/**
 * `[total, by model]`; one model that made every call: just its id, and not even that when the run's fingerprint names it. With
 * delegation: `[total, by model, delegated, runs]`.
 */
export type PackedUsage =
  | readonly [Numbers]
  | readonly [Numbers, string | readonly (readonly [string, Numbers])[], Numbers?, number?]
  | { readonly whole: JsonValue };
/** calls, input, output, total - input - output, cached, cache writes, reasoning, cost, estimated; cut behind the last that is not usual. */
type Numbers = readonly (number | null)[];

const packedUsages = new WeakMap<RunUsage, PackedUsage>();

/** A step saves the same totals more than once: packed once. */
export function packUsage(usage: RunUsage, model: string | undefined): PackedUsage {
  let packed = packedUsages.get(usage);
  if (packed === undefined) packedUsages.set(usage, (packed = packUsageOnce(usage)));
  return !('whole' in packed) && packed[1] !== undefined && packed[1] === model ? [packed[0]] : packed;
}

function packUsageOnce(usage: RunUsage): PackedUsage {
  const models = Object.entries(usage.byModel);
  const { delegated } = usage;
  const isPlain =
    isPlainUsage(usage, delegated === undefined ? 1 : 2) &&
    models.every(([, spent]) => isPlainUsage(spent, 0)) &&
    (delegated === undefined || isPlainUsage(delegated, 1));
  // Fields of a later release in it, or numbers that no addition gives back: kept whole.
  if (!isPlain) return { whole: usage as unknown as JsonValue };
  const total = packNumbers(usage);
  const only = models.length === 1 && delegated === undefined ? models[0] : undefined;
  const byModel =
    only !== undefined && sameNumbers(packNumbers(only[1]), total)
      ? only[0]
      : models.map(([id, spent]) => [id, packNumbers(spent)] as const);
  return delegated === undefined
    ? [total, byModel]
    : [total, byModel, packNumbers(delegated), delegated.runs];
}

/** Whether nothing of it is lost in a list of numbers; `otherFields` stand beside those of `ModelUsage`. */
function isPlainUsage(usage: ModelUsage, otherFields: number): boolean {
  const { inputTokens, outputTokens, totalTokens, costUsd, estimated } = usage;
  const fields = 7 + otherFields + (costUsd === undefined ? 0 : 1) + (estimated === undefined ? 0 : 1);
  const areCounts = [inputTokens, outputTokens, totalTokens].every((tokens) => Number.isSafeInteger(tokens));
  return areCounts && Object.keys(usage).length === fields;
}

function sameNumbers(a: Numbers, b: Numbers): boolean {
  return a.length === b.length && a.every((number, index) => number === b[index]);
}

function packNumbers(usage: ModelUsage): Numbers {
  const numbers: (number | null)[] = [
    usage.modelCalls,
    usage.inputTokens,
    usage.outputTokens,
    usage.totalTokens - usage.inputTokens - usage.outputTokens,
    usage.cachedInputTokens,
    usage.cacheWriteTokens,
    usage.reasoningTokens,
    usage.costUsd ?? null,
    usage.estimated === true ? 1 : 0,
  ];
  while (numbers.length > 0 && numbers.at(-1) === (numbers.length === 8 ? null : 0)) numbers.pop();
  return numbers;
}

export function unpackUsage(packed: PackedUsage, model: string | undefined): unknown {
  if ('whole' in packed) return packed.whole;
  const [total, byModel = model ?? [], delegated, runs] = packed;
  const models = typeof byModel === 'string' ? [[byModel, total] as const] : byModel;
  const usage: Record<string, unknown> = unpackNumbers(total);
  usage.byModel = objectOf(models.map(([id, numbers]) => [id, unpackNumbers(numbers)] as const));
  if (delegated !== undefined) usage.delegated = { ...unpackNumbers(delegated), runs };
  return usage;
}

function unpackNumbers(numbers: Numbers): { -readonly [Field in keyof ModelUsage]: ModelUsage[Field] } {
  const at = (index: number): number => numbers[index] ?? 0;
  const costUsd = numbers[7];
  const usage: ReturnType<typeof unpackNumbers> = {
    inputTokens: at(1),
    outputTokens: at(2),
    totalTokens: at(1) + at(2) + at(3),
    cachedInputTokens: at(4),
    cacheWriteTokens: at(5),
    reasoningTokens: at(6),
    modelCalls: at(0),
  };
  if (typeof costUsd === 'number') usage.costUsd = costUsd;
  if (at(8) === 1) usage.estimated = true;
  return usage;
}
