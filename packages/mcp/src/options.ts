/** What `mcpTools` takes, checked and with every default filled in. */
import {
  ConfigurationError,
  requireKnownOptions,
  type NeedsApproval,
  type OnInterrupted,
} from '@lousho/contract';
import { givenConnection, lazyConnection, type Connection } from './connection.ts';
import type { McpClient, McpToolInfo } from './mcp-client.ts';
import type { ResultLimits } from './result-json.ts';

/**
 * Who must agree before a tool runs. `unless-read-only`: a person, unless the server says that the tool only reads. `destructive`: a person,
 * unless it says that the tool reads, or only adds. A function decides from what the server lists.
 */
export type McpApproval =
  'always' | 'unless-read-only' | 'destructive' | 'never' | ((tool: McpToolInfo) => NeedsApproval);

/** What a resume does with a call that was cut off, as in `defineTool`. */
export type McpInterrupted =
  Extract<OnInterrupted, string> | ((tool: McpToolInfo) => Extract<OnInterrupted, string>);

export interface McpToolsOptions {
  /** Makes a connected client. Called at first, and again whenever the connection was lost. */
  readonly connect?: (() => McpClient | Promise<McpClient>) | undefined;
  /** Instead of `connect`: a connected client. The application closes it, and nobody connects it again. */
  readonly client?: McpClient | undefined;
  /** Stands before each name: `<prefix>_<tool>`. 1-32 of `A-Za-z0-9_-`. Default: none. */
  readonly prefix?: string | undefined;
  /** Whether what the server says about its tools is believed. Default `false`. */
  readonly trust?: boolean | undefined;
  /** Default `'unless-read-only'`, and `'destructive'` for a trusted server. */
  readonly approve?: McpApproval | undefined;
  /** Default `'never'`; for a trusted server, `'retry'` for tools that read or are idempotent. An approved call is `'never'` whatever it says. */
  readonly onInterrupted?: McpInterrupted | undefined;
  /** Only these, by the server's own names; each must be there. */
  readonly include?: readonly string[] | undefined;
  /** All but these, by the server's own names; each must be there. */
  readonly exclude?: readonly string[] | undefined;
  /** How long a call may take. Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** What is kept of a result, in bytes; the rest is left out and named. Default 256 KiB. */
  readonly maxResultBytes?: number | undefined;
  /** `base64` keeps images, sound and files of a result; a note takes their place otherwise. Default `'note'`. */
  readonly binary?: 'note' | 'base64' | undefined;
}

export interface ResolvedOptions {
  readonly connection: Connection;
  readonly prefix: string;
  readonly trust: boolean;
  readonly approve: McpApproval;
  readonly onInterrupted: McpInterrupted | undefined;
  readonly include: readonly string[] | undefined;
  readonly exclude: readonly string[];
  readonly timeoutMs: number;
  readonly limits: ResultLimits;
}

/** @throws synchronously LOUSHO_CONFIG_INVALID */
export function resolveOptions(options: McpToolsOptions): ResolvedOptions {
  requireKnownOptions<McpToolsOptions>('', options, {
    connect: true,
    client: true,
    prefix: true,
    trust: true,
    approve: true,
    onInterrupted: true,
    include: true,
    exclude: true,
    timeoutMs: true,
    maxResultBytes: true,
    binary: true,
  });
  const { connect, client, prefix = '', trust = false, include, exclude = [], onInterrupted } = options;
  const { timeoutMs = 60_000, maxResultBytes = 262_144, binary = 'note' } = options;
  const { approve = trust ? 'destructive' : 'unless-read-only' } = options;
  if ((connect === undefined) === (client === undefined))
    refuse('connect', connect, 'a function that makes a connected client; or give `client`, but not both');
  if (connect !== undefined && typeof connect !== 'function') refuse('connect', connect, 'a function');
  if (options.prefix !== undefined && !/^[A-Za-z0-9_-]{1,32}$/.test(prefix))
    refuse('prefix', prefix, '1-32 characters of A-Z a-z 0-9 _ -');
  if (typeof trust !== 'boolean') refuse('trust', trust, 'true or false');
  requireOneOf('approve', approve, ['always', 'unless-read-only', 'destructive', 'never']);
  if (onInterrupted !== undefined) requireOneOf('onInterrupted', onInterrupted, ['retry', 'never', 'ask']);
  if (binary !== 'note' && binary !== 'base64') refuse('binary', binary, "'note' or 'base64'");
  for (const [option, value] of Object.entries({ timeoutMs, maxResultBytes }))
    if (!Number.isInteger(value) || value < 1) refuse(option, value, 'a whole number of at least 1');
  return {
    connection: client === undefined ? lazyConnection(connect as Connect) : givenConnection(client),
    ...{ prefix, trust, approve, onInterrupted, include, exclude, timeoutMs },
    limits: { maxBytes: maxResultBytes, binary },
  };
}

type Connect = NonNullable<McpToolsOptions['connect']>;

function requireOneOf(option: string, got: unknown, words: readonly string[]): void {
  if (typeof got === 'function' || words.includes(got as string)) return;
  refuse(option, got, `${words.map((word) => `'${word}'`).join(', ')} or a function`);
}

function refuse(option: string, got: unknown, want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
}
