/** What a tool sees of its run. Nothing costly is made before the tool asks for it. */
import {
  ConfigurationError,
  canonicalJson,
  deepFreeze,
  toJson,
  type JsonObject,
  type JsonValue,
  type Message,
  type ToolAnswer,
  type ToolContext,
} from '@lousho/contract';
import type { OpenCall } from './next-action.ts';
import type { Run } from './run.ts';

export interface CallFacts {
  readonly args: JsonValue;
  /** A resume runs it, so it may have begun before. */
  readonly rerun: boolean;
  readonly approval?: NonNullable<ToolContext['approval']> | undefined;
  readonly answer?: ToolAnswer | undefined;
  readonly signal: AbortSignal;
}

const noMetadata: JsonObject = Object.freeze({});

export function toolContext(run: Run, { call, index }: OpenCall, facts: CallFacts): ToolContext {
  const { checkpoint } = run;
  const { runId, stepIndex, messages, metadata, principal } = checkpoint;
  return {
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    /** Stable when the call is run again; new for every other call, also when a provider repeats ids or a person changed the arguments. */
    get idempotencyKey() {
      return `${runId}:${stepIndex}:${index}:${shortHash(canonicalJson(facts.args))}`;
    },
    rerun: facts.rerun,
    runId,
    step: stepIndex,
    agentName: run.agent.name,
    get messages() {
      return seenByModel(messages);
    },
    metadata: metadata ?? noMetadata,
    signal: facts.signal,
    get businessState() {
      return run.businessState;
    },
    set businessState(value: JsonValue | undefined) {
      run.businessState = storableState(value);
    },
    ...(facts.approval === undefined ? undefined : { approval: facts.approval }),
    ...(facts.answer === undefined ? undefined : { answer: facts.answer }),
    ...(run.sessionId === undefined ? undefined : { sessionId: run.sessionId }),
    ...(run.task === undefined ? undefined : { subagentPath: run.task.subagentPath }),
    ...(principal === undefined ? undefined : { principal }),
  };
}

/** Without system messages, and without the calling message and its results. */
function seenByModel(messages: readonly Message[]): readonly Message[] {
  const callIndex = messages.findLastIndex((message) => message.role === 'assistant');
  return messages.slice(0, callIndex).filter((message) => message.role !== 'system');
}

function storableState(value: JsonValue | undefined): JsonValue {
  const converted = toJson(value);
  if (converted.ok) return deepFreeze(converted.json);
  const option = converted.path === '' ? 'businessState' : `businessState.${converted.path}`;
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, want: 'JSON' });
}

/** 53 bits (cyrb53, public domain): tells argument lists of one position apart; it protects against nothing else. */
function shortHash(text: string): string {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    high = Math.imul(high ^ unit, 2_654_435_761);
    low = Math.imul(low ^ unit, 1_597_334_677);
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return (4_294_967_296 * (2_097_151 & low) + (high >>> 0)).toString(36);
}
