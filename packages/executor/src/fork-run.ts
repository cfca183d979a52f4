/** A new run that begins with a saved state of another one: "what if the tool had returned something else?" */
import {
  ConfigurationError,
  SDKError,
  assertRunId,
  getCheckpointHistory,
  isSDKError,
  requireKnownOptions,
  type Checkpoint,
  type CheckpointHistoryEntry,
  type CheckpointStore,
  type InProgressCheckpoint,
  type OptionNames,
} from '@lousho/contract';
import { CheckpointWriter } from './checkpoint-writer.ts';
import { exclusively } from './exclusively.ts';
import { forkedCheckpoint, type ForkPatch } from './fork-patch.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import { refuseSealed } from './refuse-sealed.ts';
import {
  refuseOption,
  requireFunction,
  requireObject,
  requireText,
  requireWholeNumber,
} from './require-option.ts';
import type { Engine } from './run-options.ts';

export interface ForkOptions {
  /** The newest kept entry of this step. */
  readonly fromStep: number;
  /** Of an earlier run under the same id. Default: the newest. */
  readonly runId?: string | undefined;
  readonly patch?: ForkPatch | undefined;
  /** Default `<sessionId>.fork-<n>`. */
  readonly newSessionId?: string | undefined;
}
export interface ForkResult {
  readonly sessionId: string;
  readonly step: number;
  readonly checkpoint: InProgressCheckpoint;
}

export interface ForkOrder {
  readonly sessionId: string;
  readonly store: CheckpointStore;
  readonly engine: Engine;
  readonly options: ForkOptions;
}

/** @throws LOUSHO_CHECKPOINT_NOT_FOUND, LOUSHO_SESSION_EXISTS, LOUSHO_SESSION_ID_INVALID, LOUSHO_CONFIG_INVALID; nothing is stored then */
export async function forkRun(order: ForkOrder): Promise<ForkResult> {
  const { sessionId, engine, options } = order;
  assertRunId(sessionId);
  requireForkOptions(options);
  const { fromStep, patch = {}, newSessionId } = options;
  if (newSessionId !== undefined) assertRunId(newSessionId);
  const source = await findStep(order);
  const facts = {
    runId: engine.ports.ids.random(),
    forkedFrom: Object.freeze({ sessionId, step: fromStep }),
  };
  const fork = forkedCheckpoint(source, facts, patch);
  const saved =
    newSessionId === undefined
      ? await saveUnderNextId(order, fork)
      : await saveUnder(order, newSessionId, fork);
  if (saved === undefined) throw new SDKError('LOUSHO_SESSION_EXISTS', { sessionId: String(newSessionId) });
  return { ...saved, step: fromStep };
}

const everyOption: OptionNames<ForkOptions> = {
  fromStep: true,
  runId: true,
  patch: true,
  newSessionId: true,
};
const everyPatch: OptionNames<ForkPatch> = {
  messages: true,
  businessState: true,
  toolResult: true,
  appendInput: true,
};

function requireForkOptions(options: ForkOptions): void {
  requireObject('options', options, 'an object with fromStep');
  requireKnownOptions('', options, everyOption);
  requireWholeNumber('fromStep', options.fromStep, 0);
  if (options.runId !== undefined) requireText('runId', options.runId);
  const { patch } = options;
  if (patch === undefined) return;
  requireObject('patch', patch);
  requireKnownOptions('patch.', patch, everyPatch);
  if (patch.messages !== undefined) requireFunction('patch.messages', patch.messages);
  if (patch.toolResult === undefined) return;
  requireObject('patch.toolResult', patch.toolResult, 'an object with toolCallId and result');
  requireText('patch.toolResult.toolCallId', patch.toolResult.toolCallId);
  if (patch.toolResult.result === undefined) refuseOption('patch.toolResult.result', undefined, 'JSON');
}

/** One look at the history, so that a run that goes on meanwhile changes nothing. */
async function findStep({ sessionId, store, options: { fromStep, runId } }: ForkOrder): Promise<Checkpoint> {
  const history = await getCheckpointHistory(store, sessionId);
  if (history === undefined)
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'checkpointStore',
      want: 'a store with a history: a fork begins with what a run was at a step',
    });
  const ofRun = entriesOfRun(history, runId);
  const entry = ofRun.find(({ step }) => step === fromStep);
  if (entry !== undefined) {
    refuseSealed(entry.checkpoint, { id: sessionId, record: 'history' });
    return entry.checkpoint;
  }
  const keptSteps = [...new Set(ofRun.map(({ step }) => step))].sort((a, b) => a - b);
  throw new SDKError('LOUSHO_CHECKPOINT_NOT_FOUND', { sessionId, fromStep, keptSteps });
}

/** An id may have had several runs: their steps have the same numbers. */
function entriesOfRun(
  history: readonly CheckpointHistoryEntry[],
  runId = history[0]?.checkpoint.runId,
): readonly CheckpointHistoryEntry[] {
  return history.filter(({ checkpoint }) => checkpoint.runId === runId);
}

type SavedFork = Pick<ForkResult, 'sessionId' | 'checkpoint'>;

/** The first number without a run. Who forks at the same moment gets the next one. */
async function saveUnderNextId(order: ForkOrder, fork: InProgressCheckpoint): Promise<SavedFork> {
  for (let n = 1; ; n += 1) {
    const id = `${order.sessionId}.fork-${n}`;
    requireRoomForId(id);
    const saved = await saveUnder(order, id, fork);
    if (saved !== undefined) return saved;
  }
}

function requireRoomForId(id: string): void {
  try {
    assertRunId(id);
  } catch (error) {
    if (!isSDKError(error, 'LOUSHO_SESSION_ID_INVALID')) throw error;
    const rule = `${error.details.rule}; give the fork an id with newSessionId`;
    throw new SDKError('LOUSHO_SESSION_ID_INVALID', { sessionId: id, rule });
  }
}

/** `undefined` when the id has a run, or somebody is making one. The lease keeps two forks from taking one id. */
async function saveUnder(
  { store, engine }: ForkOrder,
  id: string,
  fork: InProgressCheckpoint,
): Promise<SavedFork | undefined> {
  const { clock } = engine.ports;
  try {
    return await exclusively({ checkpointId: id, store, engine }, async (lease) => {
      if ((await loadCheckpoint(store, id)) !== null) return undefined;
      const writer = new CheckpointWriter(fork, undefined, {
        ...{ id, store, lease, clock },
        traceparent: () => undefined,
        onSaved: () => undefined,
      });
      await writer.save();
      return { sessionId: id, checkpoint: writer.checkpoint as InProgressCheckpoint };
    });
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_SESSION_BUSY')) return undefined;
    throw error;
  }
}
