import type { FullAgentStore } from '@lousho/contract';

export type StoreKind = 'file' | 'sqlite';
/** `no-fence` saves and renews for whoever asks; `early` says that a save is stored before it is. */
export type StoreFault = 'no-fence' | 'early';

/** With a fault it has only what the workers of the fault rigs use. */
export function openStore(options: {
  readonly kind: StoreKind;
  readonly folder: string;
  readonly fault?: StoreFault | undefined;
}): FullAgentStore;
