/** Provider metadata on its way out and in: opaque, kept as it came, given back to whom it came from. */
import {
  LLMProviderError,
  objectOf,
  toJson,
  type JsonObject,
  type JsonValue,
  type ProviderMetadata,
  type WithProviderMetadata,
} from '@lousho/contract';

/** Where Lousho keeps its own marks; no provider is asked to read them. */
const OWN_KEY = 'lousho';

/** As a field of what is sent. */
export function providerOptionsOf({ providerMetadata }: WithProviderMetadata): {
  readonly providerOptions?: ProviderMetadata;
} {
  if (providerMetadata === undefined) return {};
  const { [OWN_KEY]: _own, ...others } = providerMetadata;
  return Object.keys(others).length === 0 ? {} : { providerOptions: others };
}

/** As a field of what was received. */
export function metadataOf(received: unknown): WithProviderMetadata {
  if (received === undefined || received === null) return {};
  const providerMetadata = jsonOf(received, 'provider metadata') as ProviderMetadata;
  return Object.keys(providerMetadata).length === 0 ? {} : { providerMetadata };
}

/** What comes later adds or replaces, key by key for each provider. */
export function mergeMetadata(
  earlier: ProviderMetadata | undefined,
  later: ProviderMetadata | undefined,
): ProviderMetadata | undefined {
  if (earlier === undefined || later === undefined) return later ?? earlier;
  const merged = Object.entries(later).map(([provider, data]): readonly [string, JsonObject] => [
    provider,
    { ...earlier[provider], ...data },
  ]);
  return { ...earlier, ...objectOf(merged) };
}

/** @throws LLMProviderError when the model gave what JSON cannot say: it could not be stored */
export function jsonOf(received: unknown, what: string): JsonValue {
  const outcome = toJson(received);
  if (outcome.ok) return outcome.json;
  throw new LLMProviderError(`The model gave ${what} that is no JSON${at(outcome.path)}.`, {
    kind: 'invalid-response',
    retryable: true,
  });
}

function at(path: string): string {
  return path === '' ? '' : ` at ${path}`;
}
