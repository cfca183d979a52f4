/** What an agent is recognised by after a deploy: model, tool inputs, instructions. Code is not part of it. */
import { canonicalJson, deepFreeze, objectOf, type AgentFingerprint, type LLMTool } from '@lousho/contract';

/** Raised when the way of hashing changes: fingerprints of different versions are never compared. */
const FINGERPRINT_VERSION = 1;

export interface FingerprintParts {
  readonly model: string;
  readonly tools: readonly LLMTool[];
  readonly instructions: string;
}

export async function fingerprintOf(parts: FingerprintParts): Promise<AgentFingerprint> {
  const byName = [...parts.tools].sort((a, b) => (a.name < b.name ? -1 : 1));
  const hashes = await Promise.all(
    byName.map(async (tool) => [tool.name, await shortSha256(canonicalJson(tool.inputSchema))] as const),
  );
  const body = {
    model: parts.model,
    tools: objectOf(hashes),
    instructions: await shortSha256(parts.instructions),
  };
  return deepFreeze({ version: FINGERPRINT_VERSION, hash: await shortSha256(canonicalJson(body)), ...body });
}

/** 16 hex characters: enough to tell versions of one agent apart, short enough to be stored with each run. */
async function shortSha256(text: string): Promise<string> {
  return (await sha256(text)).slice(0, 16);
}

/** 64 hex characters, by Web Crypto. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
