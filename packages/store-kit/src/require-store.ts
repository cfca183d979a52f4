/** Whether an option is a store at all: else a path or a part of a store would be copied as if it were empty. */
import { ConfigurationError, type AgentStore } from '@lousho/contract';

/** What each part of a store must have; the rest is optional and detected. */
const requiredMethods = {
  checkpoints: ['save', 'load', 'delete'],
  approvals: ['save', 'load', 'list', 'delete'],
  sessions: ['load', 'saveIfRevision', 'delete'],
} as const;
const partNames = ['checkpoints', 'approvals', 'sessions'] as const;

/**
 * Refuses what `createAgent` refuses, in its words.
 * @param option its name
 * @throws synchronously LOUSHO_CONFIG_INVALID
 */
export function requireStore(option: string, store: AgentStore): void {
  if (typeof store !== 'object' || store === null)
    refuse(option, store, 'an AgentStore, for example memoryStore()');
  if (partNames.every((part) => store[part] === undefined)) {
    refuse(
      option,
      store,
      'an AgentStore with a checkpoints part; a checkpoint store alone goes in as { checkpoints: store }',
    );
  }
  for (const part of partNames)
    if (store[part] !== undefined) requireMethods(`${option}.${part}`, requiredMethods[part], store[part]);
}

function requireMethods(option: string, names: readonly string[], part: unknown): void {
  for (const name of names) {
    const method = (part as Readonly<Record<string, unknown>> | null)?.[name];
    if (typeof method !== 'function') refuse(`${option}.${name}`, method, 'a function');
  }
}

/** A store that lacks a part, or a way to list it. */
export function invalidStore(option: string, want: string): ConfigurationError {
  return new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, want });
}

function refuse(option: string, got: unknown, want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want });
}
