/** A tool's result as an AI SDK model is told it: a value, a failure, or that a person or a rule said no. */
import type { JsonValue, ToolFailure, ToolResultPart } from '@lousho/contract';
import type { SpecVersion } from './language-model.ts';
import { providerOptionsOf } from './metadata.ts';

/** Of a call that we ran. */
export function writeResult(part: ToolResultPart, version: SpecVersion): object {
  return withOutput(part, outputOf(part, version));
}

/** Of a call that the provider ran: given back as JSON, which is what it came as. */
export function writeProviderResult(part: ToolResultPart): object {
  return withOutput(part, { type: part.isError === true ? 'error-json' : 'json', value: part.result });
}

function withOutput(part: ToolResultPart, output: object): object {
  const { toolCallId, toolName } = part;
  return { type: 'tool-result', toolCallId, toolName, output, ...providerOptionsOf(part) };
}

function outputOf(part: ToolResultPart, version: SpecVersion): object {
  const { result, isError, kind } = part;
  if ((kind === 'rejected' || kind === 'denied') && isFailure(result)) return denial(result, version);
  if (isError === true) {
    return typeof result === 'string'
      ? { type: 'error-text', value: result }
      : { type: 'error-json', value: result };
  }
  return typeof result === 'string' ? { type: 'text', value: result } : { type: 'json', value: result };
}

/** `v2` has no word for it. */
function denial({ error, note }: ToolFailure, version: SpecVersion): object {
  const reason = note === undefined ? error : `${error} ${note}`;
  return version === 2 ? { type: 'error-text', value: reason } : { type: 'execution-denied', reason };
}

function isFailure(result: JsonValue): result is JsonValue & ToolFailure {
  return (
    typeof result === 'object' && result !== null && 'error' in result && typeof result.error === 'string'
  );
}
