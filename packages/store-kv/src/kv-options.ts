/** What `new KVStore(kv, options)` takes, checked once. */
import {
  ConfigurationError,
  resolvePorts,
  requireKnownOptions,
  resolveStoreOptions,
  type Ports,
  type StoreOptions,
} from '@lousho/contract';
import { bytesOf, MIN_TTL_SECONDS, type KVNamespaceLike } from './kv-namespace.ts';
import { MAX_PREFIX_BYTES } from './kv-keys.ts';

export interface KVStoreOptions extends Omit<StoreOptions, 'historyMaxBytes' | 'retentionMs'> {
  /** Begins every key. Default `'lousho/'`; `''`, or a text without `#` that ends in `/` or `:`. */
  readonly prefix?: string | undefined;
  /** Seconds after its last save at which KV removes a record by itself, at least 60. Default: kept. */
  readonly ttlSeconds?: number | undefined;
}

export interface ResolvedKVOptions {
  readonly prefix: string;
  readonly ttlSeconds: number | undefined;
  readonly historyLimit: number;
  readonly ports: Ports;
}

/** @throws synchronously LOUSHO_CONFIG_INVALID naming the option */
export function resolveKVOptions(kv: KVNamespaceLike, options: KVStoreOptions): ResolvedKVOptions {
  requireKnownOptions<KVStoreOptions>('', options, {
    prefix: true,
    ttlSeconds: true,
    historyLimit: true,
    ports: true,
  });
  const { prefix = 'lousho/', ttlSeconds, ports } = options;
  const isNamespace = (['get', 'put', 'delete'] as const).every(
    (method) => typeof (kv as KVNamespaceLike | undefined | null)?.[method] === 'function',
  );
  if (!isNamespace)
    refuse(
      'kv',
      kv,
      'a Workers KV namespace, for example env.RUNS with a kv_namespaces binding of that name',
    );
  if (typeof prefix !== 'string' || !isPrefix(prefix))
    refuse(
      'prefix',
      prefix,
      `'', or at most ${MAX_PREFIX_BYTES} bytes without # that end in / or :, so that no key of another prefix looks like one of this`,
    );
  if (ttlSeconds !== undefined && !(Number.isSafeInteger(ttlSeconds) && ttlSeconds >= MIN_TTL_SECONDS))
    refuse('ttlSeconds', ttlSeconds, `a whole number of seconds, ${MIN_TTL_SECONDS} or more, as KV asks for`);
  const { historyLimit } = resolveStoreOptions({ historyLimit: options.historyLimit });
  return { prefix, ttlSeconds, historyLimit, ports: resolvePorts(ports) };
}

function isPrefix(prefix: string): boolean {
  if (prefix === '') return true;
  return (
    /[/:]$/.test(prefix) &&
    !prefix.includes('#') &&
    prefix.isWellFormed() &&
    bytesOf(prefix) <= MAX_PREFIX_BYTES
  );
}

function refuse(option: string, got: unknown, want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
}
