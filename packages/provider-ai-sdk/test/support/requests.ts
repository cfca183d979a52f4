/** Requests to a provider, and its answers. */
import type { LLMProvider, LLMRequest, LLMResponse, LLMStreamEvent } from '@lousho/contract';

export function requestOf(fields: Partial<LLMRequest> = {}): LLMRequest {
  return {
    messages: [{ role: 'user', content: 'How is the weather?' }],
    ...{ tools: [], providerTools: [], settings: {}, signal: new AbortController().signal },
    ...fields,
  };
}

/** All events of a stream; the last one has the response. */
export async function eventsOf(provider: LLMProvider, request: LLMRequest): Promise<LLMStreamEvent[]> {
  const heard: LLMStreamEvent[] = [];
  for await (const event of provider.stream?.(request) ?? []) heard.push(event);
  return heard;
}

export async function streamed(provider: LLMProvider, request: LLMRequest): Promise<LLMResponse> {
  const last = (await eventsOf(provider, request)).at(-1);
  if (last?.type !== 'finish') throw new Error('The stream has no finish event.');
  return last.response;
}

export const ways = [
  { way: 'generate', ask: (provider: LLMProvider, request: LLMRequest) => provider.generate(request) },
  { way: 'stream', ask: streamed },
] as const;

export function thrownBy(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => {
      throw new Error('It did not fail.');
    },
    (error: unknown) => error,
  );
}
