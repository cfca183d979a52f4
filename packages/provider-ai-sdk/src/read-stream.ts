/** A stream of an AI SDK model: deltas as they come, and at its end the response that `doGenerate` would have given. */
import type { AssistantPart, LLMResponse, LLMStreamEvent, ProviderMetadata } from '@lousho/contract';
import type {
  AiSdkContent,
  AiSdkResponseMetadata,
  AiSdkResult,
  AiSdkStreamPart,
  AiSdkWarning,
} from './language-model.ts';
import { mergeMetadata, metadataOf } from './metadata.ts';
import { readContent, readText } from './read-content.ts';
import { interrupted, readResponse, reasonsOf } from './read-response.ts';

export interface ReadStreamOptions {
  readonly allowMissingFinishReason: boolean;
  readonly warnings: readonly string[];
}

/** Cancels the stream when whoever listens leaves early. @throws what the stream carries as an error */
export async function* readStream(
  stream: ReadableStream<AiSdkStreamPart>,
  options: ReadStreamOptions,
): AsyncGenerator<LLMStreamEvent> {
  const heard = new HeardParts();
  const reader = stream.getReader();
  let isOver = false;
  try {
    for (;;) {
      const { done, value: part } = await reader.read();
      if (done) break;
      if (part.type === 'error' && !isMissingReason(part.error)) throw part.error;
      const delta = heard.add(part);
      if (delta !== undefined) yield delta;
    }
    isOver = true;
  } finally {
    if (!isOver) await cancelQuietly(reader);
  }
  yield { type: 'finish', response: heard.response(options) };
}

/** The compatible models of v3 and v4 call a missing reason an error, and end the answer with one. */
function isMissingReason(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === 'AI_InvalidResponseDataError' &&
    /without a finish reason/.test(error.message)
  );
}

/** Why nobody listens any more is on its way up already; that the stream cannot be cancelled, because it broke by itself, adds nothing. */
function cancelQuietly(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
  return reader.cancel().catch(() => undefined);
}

/** What v2, v3 and v4 say where the service said nothing. */
const unsaidReasons: ReadonlySet<string> = new Set(['unknown', 'other', 'interrupted']);

/** A text or a reasoning that is still being said. */
interface OpenBlock {
  readonly type: 'text' | 'reasoning';
  text: string;
  metadata: ProviderMetadata | undefined;
}

/** What was said so far, in the order in which it began. */
class HeardParts {
  readonly #said: (OpenBlock | { readonly type: 'content'; readonly content: AiSdkContent })[] = [];
  readonly #open = new Map<string, OpenBlock>();
  /** Of the calls whose arguments are being written, by call id. */
  readonly #toolNames = new Map<string, string>();
  #warnings: readonly AiSdkWarning[] = [];
  #response: AiSdkResponseMetadata = {};
  #isReasonMissing = false;
  #end: Omit<AiSdkResult, 'content'> | undefined;

  /** Gives what is worth telling at once. */
  add(part: AiSdkStreamPart): LLMStreamEvent | undefined {
    switch (part.type) {
      case 'text-start':
        return this.#begin('text', part);
      case 'reasoning-start':
        return this.#begin('reasoning', part);
      case 'text-delta':
      case 'text-end':
        return this.#continue('text', part);
      case 'reasoning-delta':
      case 'reasoning-end':
        return this.#continue('reasoning', part);
      case 'tool-input-start':
        this.#toolNames.set(part.id, part.toolName);
        return undefined;
      case 'tool-input-delta':
        return this.#argsDelta(part);
      case 'stream-start':
        this.#warnings = part.warnings ?? [];
        return undefined;
      case 'response-metadata':
        this.#response = { ...this.#response, ...part };
        return undefined;
      case 'finish':
        this.#end = part;
        return undefined;
      case 'error':
        this.#isReasonMissing = true;
        return undefined;
      case 'tool-input-end':
      case 'raw':
      case 'ping':
        return undefined;
      default:
        this.#said.push({ type: 'content', content: part });
        return undefined;
    }
  }

  /** @throws LLMProviderError when the stream ended before the answer did: a proxy that gave up ends it as if nothing was wrong */
  response({ allowMissingFinishReason, warnings }: ReadStreamOptions): LLMResponse {
    const end = this.#end;
    if (end === undefined) throw interrupted('The stream ended without an end of the answer.');
    const { unified, raw } = reasonsOf(end.finishReason);
    const isUnsaid = this.#isReasonMissing || (raw === undefined && unsaidReasons.has(unified));
    if (isUnsaid && !allowMissingFinishReason)
      throw interrupted('The stream ended without saying why: the answer may be cut off.');
    const finishReason = isUnsaid ? 'other' : end.finishReason;
    const result = { ...end, finishReason, response: this.#response, warnings: this.#warnings };
    return readResponse(this.#parts(), result, warnings);
  }

  #parts(): readonly AssistantPart[] {
    return this.#said.flatMap((said) =>
      said.type === 'content' ? readContent(said.content) : readText(said.type, said.text, said.metadata),
    );
  }

  #begin(
    type: OpenBlock['type'],
    { id, providerMetadata }: { readonly id: string; readonly providerMetadata?: unknown },
  ): undefined {
    const block: OpenBlock = { type, text: '', metadata: metadataOf(providerMetadata).providerMetadata };
    this.#said.push(block);
    this.#open.set(`${type} ${id}`, block);
  }

  #continue(
    type: OpenBlock['type'],
    part: { readonly id: string; readonly delta?: string; readonly providerMetadata?: unknown },
  ): LLMStreamEvent | undefined {
    const block = this.#open.get(`${type} ${part.id}`);
    if (block === undefined) return undefined;
    const { delta = '' } = part;
    block.text += delta;
    // Signatures come with a delta, encrypted reasoning with the end.
    block.metadata = mergeMetadata(block.metadata, metadataOf(part.providerMetadata).providerMetadata);
    return delta === '' ? undefined : { type: `${type}-delta`, text: delta };
  }

  #argsDelta({ id, delta }: { readonly id: string; readonly delta: string }): LLMStreamEvent | undefined {
    const toolName = this.#toolNames.get(id);
    if (toolName === undefined || delta === '') return undefined;
    return { type: 'tool-args-delta', toolCallId: id, toolName, text: delta };
  }
}
