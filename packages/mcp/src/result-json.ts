/** What a server answered → the JSON that the run keeps. Each later model call pays for it, so it has a limit. */
import { cutText, toJson, type JsonValue } from '@lousho/contract';

export interface ResultLimits {
  readonly maxBytes: number;
  readonly binary: 'note' | 'base64';
}
export type Answer =
  | { readonly type: 'result'; readonly value: JsonValue }
  /** The tool's own error, in its words. */
  | { readonly type: 'error'; readonly text: string }
  | { readonly type: 'input-required'; readonly asked: Record<string, unknown> };

export function readAnswer(answer: unknown, limits: ResultLimits): Answer {
  const { resultType, content, structuredContent, isError } = objectOf(answer);
  if (resultType === 'input_required') return { type: 'input-required', asked: objectOf(answer) };
  const kept = new KeptContent(limits);
  const structured = structuredContent === undefined ? undefined : kept.structured(structuredContent);
  const blocks = Array.isArray(content) ? content : [];
  // Servers repeat structured content as text, for clients that do not know it.
  const parts = blocks
    .filter((block) => structured === undefined || objectOf(block).type !== 'text')
    .map((block) => kept.part(objectOf(block)));
  if (isError === true) return { type: 'error', text: textOf(parts) || 'It gave no reason.' };
  return { type: 'result', value: valueOf(structured, parts) };
}

interface TextPart {
  readonly type: 'text';
  readonly text: string;
}
type Part = TextPart | { readonly type: string; readonly [field: string]: JsonValue };

/** Plain text stays a text, structured content stays what it is; only a mixture needs a list. */
function valueOf(structured: JsonValue | undefined, parts: readonly Part[]): JsonValue {
  if (structured !== undefined && parts.length === 0) return structured;
  if (structured === undefined && parts.every(isText)) return textOf(parts);
  const content = parts as readonly JsonValue[];
  return structured === undefined ? { content } : { structuredContent: structured, content };
}

function isText(part: Part): part is TextPart {
  return part.type === 'text';
}

function textOf(parts: readonly Part[]): string {
  return parts
    .filter(isText)
    .map(({ text }) => text)
    .join('\n');
}

/** Takes one part after the other until nothing more fits. */
class KeptContent {
  readonly #limits: ResultLimits;
  #leftBytes: number;

  constructor(limits: ResultLimits) {
    this.#limits = limits;
    this.#leftBytes = limits.maxBytes;
  }

  /** `undefined`: it does not fit, or is no JSON. Then its text may say it, cut. */
  structured(value: unknown): JsonValue | undefined {
    const converted = toJson(value);
    return converted.ok && this.#take(byteCount(JSON.stringify(converted.json))) ? converted.json : undefined;
  }

  part(block: Record<string, unknown>): Part {
    const { type } = block;
    if (type === 'text' && typeof block.text === 'string') return this.#text(block.text);
    if ((type === 'image' || type === 'audio') && typeof block.data === 'string')
      return this.#binary(type, block.data, { mediaType: textField(block.mimeType) });
    if (type === 'resource') return this.#resource(objectOf(block.resource));
    return this.#other(block);
  }

  #text(text: string): TextPart {
    const bytes = byteCount(text);
    if (this.#take(bytes)) return { type: 'text', text };
    const left = this.#leftBytes;
    this.#leftBytes = 0;
    const head = cutToBytes(text, left);
    return {
      type: 'text',
      text: `${head}${head === '' ? '' : '\n'}[${this.#leftOut(bytes - byteCount(head))}]`,
    };
  }

  #binary(kind: string, base64: string, about: { readonly mediaType: string; readonly uri?: string }): Part {
    const { mediaType, uri } = about;
    const isKept = this.#limits.binary === 'base64' && this.#take(base64.length);
    if (isKept) return { type: kind, ...about, data: base64 };
    const what = [kind, mediaType, uri].filter((part) => part !== undefined && part !== '').join(' ');
    const bytes = Math.floor((base64.length * 3) / 4);
    return { type: 'text', text: `[${what}, ${bytes} bytes, left out]` };
  }

  #resource({ uri, mimeType, text, blob }: Record<string, unknown>): Part {
    const about = { uri: textField(uri), mediaType: textField(mimeType) };
    if (typeof blob === 'string') return this.#binary('resource', blob, about);
    return { type: 'resource', ...about, text: this.#text(textField(text)).text };
  }

  /** Links, and what later revisions of the protocol bring. */
  #other(block: Record<string, unknown>): Part {
    const converted = toJson(block);
    const bytes = converted.ok ? byteCount(JSON.stringify(converted.json)) : 0;
    const type = textField(block.type);
    if (!converted.ok || !this.#take(bytes))
      return { type: 'text', text: `[${type}, ${bytes} bytes, left out]` };
    return { ...(converted.json as Record<string, JsonValue>), type };
  }

  #take(bytes: number): boolean {
    if (bytes > this.#leftBytes) return false;
    this.#leftBytes -= bytes;
    return true;
  }

  #leftOut(bytes: number): string {
    return `${bytes} bytes left out: of this result, ${this.#limits.maxBytes} bytes are kept`;
  }
}

function cutToBytes(text: string, maxBytes: number): string {
  // A character has at most three bytes a UTF-16 unit: what fits certainly first, then what still does.
  let units = Math.floor(maxBytes / 3);
  for (let step = units; step >= 1; step = Math.floor(step / 2))
    while (units + step <= text.length && byteCount(cutText(text, units + step)) <= maxBytes) units += step;
  return cutText(text, units);
}

function byteCount(text: string): number {
  return new TextEncoder().encode(text).length;
}

function textField(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
