/** A store over another one, which sees ids, status and times, and nothing of what was said. */
import type {
  AgentStore,
  ApprovalStore,
  CheckpointStore,
  FullAgentStore,
  SessionStore,
} from '@lousho/contract';
import { CheckpointSealer } from './checkpoint-sealer.ts';
import { platformCrypto, type CryptoPort } from './crypto-ports.ts';
import { requireStore } from './require-store.ts';
import { SealedApprovals } from './sealed-approvals.ts';
import { SealedCheckpoints } from './sealed-checkpoints.ts';
import { SealedSessions } from './sealed-sessions.ts';
import { Seals } from './sealed-text.ts';
import { SealedTranscripts } from './sealed-transcripts.ts';
import { resolveKeys, type SealingKey } from './sealing-keys.ts';

/**
 * Seals everything that `store` keeps with AES-256-GCM: the first key seals, all of them open. It has the methods that `store` has and
 * claims what `store` claims; `close` closes `store`. A record that was changed, moved or exchanged is `LOUSHO_CHECKPOINT_CORRUPT`, one
 * that was sealed with another key `LOUSHO_STORE_KEY_UNKNOWN`, one that is not sealed `LOUSHO_STORE_NOT_SEALED`.
 * @throws synchronously LOUSHO_CONFIG_INVALID (the store, the keys)
 */
export function encryptedStore(store: FullAgentStore, keys: readonly SealingKey[]): FullAgentStore;
export function encryptedStore(store: AgentStore, keys: readonly SealingKey[]): AgentStore;
export function encryptedStore(store: AgentStore, keys: readonly SealingKey[]): AgentStore {
  return sealedStore(store, keys, platformCrypto);
}

/** The same with another platform, for tests. */
export function sealedStore(store: AgentStore, keys: readonly SealingKey[], port: CryptoPort): AgentStore {
  requireStore('store', store);
  const seals = new Seals(resolveKeys(keys, port), port);
  const transcripts = new SealedTranscripts(seals);
  const { contractVersion, checkpoints, approvals, sessions } = store;
  const sealed = {
    checkpoints: checkpoints && new SealedCheckpoints(checkpoints, new CheckpointSealer(seals, transcripts)),
    approvals: approvals && new SealedApprovals(approvals, seals),
    sessions: sessions && new SealedSessions(sessions, seals, transcripts),
  };
  /** What is being sealed reaches the store before it is closed. */
  const whenStarted = async (): Promise<void> => {
    await Promise.all(
      [sealed.checkpoints, sealed.approvals, sealed.sessions].map(async (part) => part?.started()),
    );
  };
  return {
    ...(contractVersion === undefined ? undefined : { contractVersion }),
    ...(checkpoints &&
      sealed.checkpoints && { checkpoints: checkpointMethods(checkpoints, sealed.checkpoints, whenStarted) }),
    ...(sealed.approvals && { approvals: approvalMethods(sealed.approvals) }),
    ...(sessions && sealed.sessions && { sessions: sessionMethods(sessions, sealed.sessions) }),
    ...wholeMethods(store, whenStarted),
  };
}

/** Those that the store has, and no others: agents look for the methods. */
function checkpointMethods(
  inner: CheckpointStore,
  sealed: SealedCheckpoints,
  whenStarted: () => Promise<void>,
): CheckpointStore {
  const { claims } = inner;
  return {
    ...(claims && { claims }),
    save: (id, checkpoint) => sealed.save(id, checkpoint),
    load: (id) => sealed.load(id),
    delete: (id, options) => sealed.delete(id, options),
    ...(inner.history && { history: (id, options) => sealed.history(id, options) }),
    ...(inner.list && { list: (options) => sealed.list(options) }),
    ...(inner.listHeaders && { listHeaders: (options) => sealed.listHeaders(options) }),
    ...leaseMethods(inner),
    ...(inner.saveIfLeased && {
      saveIfLeased: (id, checkpoint, owner, fence) => sealed.saveIfLeased(id, checkpoint, owner, fence),
    }),
    ...wholeMethods(inner, whenStarted),
  };
}

/** A lease holds nothing that was said. */
function leaseMethods(
  inner: CheckpointStore,
): Partial<Pick<CheckpointStore, 'acquireLease' | 'renewLease' | 'releaseLease' | 'heldLeases'>> {
  return {
    ...(inner.acquireLease && { acquireLease: inner.acquireLease.bind(inner) }),
    ...(inner.renewLease && { renewLease: inner.renewLease.bind(inner) }),
    ...(inner.releaseLease && { releaseLease: inner.releaseLease.bind(inner) }),
    ...(inner.heldLeases && { heldLeases: inner.heldLeases.bind(inner) }),
  };
}

function approvalMethods(sealed: SealedApprovals): ApprovalStore {
  return {
    save: (record) => sealed.save(record),
    load: (id) => sealed.load(id),
    list: (options) => sealed.list(options),
    delete: (id) => sealed.delete(id),
  };
}

function sessionMethods(inner: SessionStore, sealed: SealedSessions): SessionStore {
  return {
    load: (id) => sealed.load(id),
    saveIfRevision: (record, expectedRevision) => sealed.saveIfRevision(record, expectedRevision),
    delete: (id) => sealed.delete(id),
    ...(inner.list && { list: () => sealed.list() }),
  };
}

type WholeMethods = Pick<AgentStore, 'prune' | 'close' | typeof Symbol.asyncDispose>;

/** What concerns the store as a whole, of the store or of its checkpoints. */
function wholeMethods(inner: WholeMethods, whenStarted: () => Promise<void>): WholeMethods {
  const { prune, close } = inner;
  const dispose = inner[Symbol.asyncDispose];
  const afterStart = (end: () => Promise<void>) => async (): Promise<void> => {
    await whenStarted();
    await end.call(inner);
  };
  return {
    ...(prune && { prune: prune.bind(inner) }),
    ...(close && { close: afterStart(close) }),
    ...(dispose && { [Symbol.asyncDispose]: afterStart(dispose) }),
  };
}
