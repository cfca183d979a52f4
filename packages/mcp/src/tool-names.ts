/** What the server's tools are called here. A name depends on the tool alone, so a resumed run finds it whatever else the server lists. */
import { ConfigurationError } from '@lousho/contract';

const MAX_NAME_LENGTH = 64;
const HASH_LENGTH = 8;

/** @throws LOUSHO_CONFIG_INVALID when two names of the server come to one */
export async function toolNames(
  prefix: string,
  originals: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const owners = new Map<string, string>();
  for (const original of originals) {
    const name = await toolName(prefix, original);
    const owner = owners.get(name);
    if (owner !== undefined) {
      throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
        option: 'exclude',
        want: `such that names stay apart: "${owner}" and "${original}" of the server are both "${name}" here`,
      });
    }
    owners.set(name, original);
    names.set(original, name);
  }
  return names;
}

async function toolName(prefix: string, original: string): Promise<string> {
  const name = `${prefix === '' ? '' : `${prefix}_`}${original.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`;
  if (name.length > 0 && name.length <= MAX_NAME_LENGTH) return name;
  return `${name.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1)}_${await shortHash(original)}`;
}

async function shortHash(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.slice(0, HASH_LENGTH);
}
