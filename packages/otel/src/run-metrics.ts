/** The metrics of model calls, tools and agents. Made anew when another provider of meters is registered: the API forwards none of those that were made before. */
import {
  metrics,
  type Attributes,
  type Context,
  type Counter,
  type Histogram,
  type Meter,
  type MeterProvider,
} from '@opentelemetry/api';
import type { LLMUsage } from '@lousho/contract';
import { attributes, buckets } from './conventions.ts';

export class RunMetrics {
  readonly #given: MeterProvider | undefined;
  readonly #scope: string;
  #provider: MeterProvider | undefined;
  #made: Instruments | undefined;

  constructor(scope: string, given: MeterProvider | undefined) {
    this.#scope = scope;
    this.#given = given;
  }

  modelCall(
    seconds: number,
    usage: LLMUsage,
    about: { readonly common: Attributes; readonly ended: Attributes },
    context: Context,
  ): void {
    const { common, ended } = about;
    const made = this.#instruments();
    made.inferenceSeconds.record(seconds, { ...common, ...ended }, context);
    // A call that failed counts with 0, or the percentiles would be those of the lucky ones.
    const { inputTokens = 0, outputTokens = 0 } = usage;
    made.inputTokensOfCall.record(inputTokens, { ...common, ...ended }, context);
    made.outputTokensOfCall.record(outputTokens, { ...common, ...ended }, context);
    const { [attributes.errorType]: _error, ...model } = ended;
    const spent = { ...common, ...model, [attributes.tokenModality]: 'unknown' };
    made.inputTokens.add(inputTokens, spent, context);
    made.outputTokens.add(outputTokens, spent, context);
    made.cacheReadTokens.add(usage.cachedInputTokens ?? 0, spent, context);
    made.cacheWriteTokens.add(usage.cacheWriteTokens ?? 0, spent, context);
    made.reasoningTokens.add(usage.reasoningTokens ?? 0, spent, context);
  }

  firstChunk(seconds: number, common: Attributes, context: Context): void {
    this.#instruments().secondsToFirstChunk.record(seconds, common, context);
  }

  toolCall(seconds: number, about: Attributes, context: Context): void {
    this.#instruments().toolSeconds.record(seconds, about, context);
  }

  agent(
    spent: { readonly seconds: number; readonly modelCalls: number; readonly toolCalls: number },
    agentName: string,
    ended: Attributes,
    context: Context,
  ): void {
    const made = this.#instruments();
    const about = { [attributes.agentName]: agentName };
    made.agentSeconds.record(spent.seconds, { ...about, ...ended }, context);
    made.modelCallsOfAgent.record(spent.modelCalls, about, context);
    made.toolCallsOfAgent.record(spent.toolCalls, about, context);
  }

  #instruments(): Instruments {
    const provider = this.#given ?? metrics.getMeterProvider();
    if (this.#made === undefined || provider !== this.#provider) {
      this.#provider = provider;
      this.#made = makeInstruments(provider.getMeter(this.#scope));
    }
    return this.#made;
  }
}

interface Instruments {
  readonly inferenceSeconds: Histogram;
  readonly secondsToFirstChunk: Histogram;
  readonly inputTokensOfCall: Histogram;
  readonly outputTokensOfCall: Histogram;
  readonly inputTokens: Counter;
  readonly outputTokens: Counter;
  readonly cacheReadTokens: Counter;
  readonly cacheWriteTokens: Counter;
  readonly reasoningTokens: Counter;
  readonly toolSeconds: Histogram;
  readonly agentSeconds: Histogram;
  readonly modelCallsOfAgent: Histogram;
  readonly toolCallsOfAgent: Histogram;
}

function makeInstruments(meter: Meter): Instruments {
  const histogram = (name: string, unit: string, bounds: number[], description: string): Histogram =>
    meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: bounds } });
  const tokens = (kind: string, description: string): Counter =>
    meter.createCounter(`gen_ai.client.inference.usage.${kind}`, { unit: '{token}', description });
  const { callSeconds, agentSeconds } = buckets;
  const inference = 'gen_ai.client.inference';
  return {
    inferenceSeconds: histogram(`${inference}.duration`, 's', callSeconds, 'Duration of model calls.'),
    secondsToFirstChunk: histogram(
      `${inference}.time_to_first_chunk`,
      's',
      callSeconds,
      'Until a streamed response begins.',
    ),
    inputTokensOfCall: histogram(
      `${inference}.operation.input_tokens`,
      '{token}',
      buckets.tokens,
      'Input tokens of a call.',
    ),
    outputTokensOfCall: histogram(
      `${inference}.operation.output_tokens`,
      '{token}',
      buckets.tokens,
      'Output tokens of a call.',
    ),
    inputTokens: tokens('input_tokens', 'Input tokens, cached ones included.'),
    outputTokens: tokens('output_tokens', 'Output tokens, reasoning included.'),
    cacheReadTokens: tokens('cache_read.input_tokens', 'Input tokens read from a cache.'),
    cacheWriteTokens: tokens('cache_write.input_tokens', 'Input tokens written to a cache.'),
    reasoningTokens: tokens('reasoning.output_tokens', 'Output tokens spent on reasoning.'),
    toolSeconds: histogram('gen_ai.execute_tool.duration', 's', callSeconds, 'Duration of tool calls.'),
    agentSeconds: histogram('gen_ai.invoke_agent.duration', 's', agentSeconds, 'Duration of agents.'),
    modelCallsOfAgent: histogram(
      'gen_ai.invoke_agent.inference_calls',
      '{inference_call}',
      buckets.calls,
      'Model calls.',
    ),
    toolCallsOfAgent: histogram(
      'gen_ai.invoke_agent.tool_calls',
      '{tool_call}',
      buckets.calls,
      'Tool calls.',
    ),
  };
}
