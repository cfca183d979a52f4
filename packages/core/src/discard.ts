/** Dropping what is unfinished, or a whole run, by the id that callers use. */
import { ConfigurationError, assertRunId, isSessionId, turnCheckpointId } from '@lousho/contract';
import { exclusively, loadOrDamaged } from '@lousho/executor/wiring';
import type { AgentParts } from './agent-config.ts';
import type { DiscardOptions } from './agent.ts';
import { dropRun } from './drop-run.ts';
import type { LiveRuns } from './live-runs.ts';
import { requireOptions } from './require-options.ts';
import { partsOf } from './session-parts.ts';
import { discardTurn } from './session-removal.ts';
import { loadTranscript } from './transcripts.ts';

/** A session counts before a run of the same id, as for `resume`. */
export async function discard(
  parts: AgentParts,
  live: LiveRuns,
  sessionId: string,
  options: DiscardOptions,
): Promise<boolean> {
  live.requireOpen();
  requireOptions(options, { kind: true });
  assertRunId(sessionId);
  const { kind } = options;
  if (kind !== 'run' && (await hasStoredTurn(parts, sessionId)))
    return discardTurn(partsOf(parts, sessionId), sessionId);
  return kind === 'session' ? false : discardRun(parts, sessionId);
}

/** Also a damaged one: dropping it is often all that can be done with it. */
async function hasStoredTurn(parts: AgentParts, sessionId: string): Promise<boolean> {
  if (!isSessionId(sessionId)) return false;
  const { transcripts, turns } = partsOf(parts, sessionId).sessions;
  const { turn } = await loadTranscript(transcripts, sessionId);
  return (await loadOrDamaged(turns, turnCheckpointId(sessionId, turn))) !== null;
}

async function discardRun(parts: AgentParts, id: string): Promise<boolean> {
  const { checkpoints: store, engine } = parts;
  if (store === undefined)
    throw new ConfigurationError('LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE', { operation: 'agent.discard()' });
  if ((await loadOrDamaged(store, id)) === null) return false;
  return exclusively({ checkpointId: id, store, engine }, async () => {
    await dropRun({ ...parts, store }, { id, sessionId: id, said: ({ messages }) => messages });
    return true;
  });
}
