/** `lousho discard <id>`: drops a run, or the unfinished turn of a session, and withdraws its approvals. */
import {
  SDKError,
  classifyCheckpointId,
  isSDKError,
  type AgentStore,
  type PendingKind,
} from '@lousho/contract';
import { CliError } from '../cli-error.ts';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { findRun } from '../find-run.ts';
import { storeAgent } from '../store-agent.ts';
import { good } from '../terminal/styled-line.ts';

export function registerDiscard(cli: Cli): void {
  cli.program
    .command('discard <id>')
    .description('drop a run, or the unfinished turn of a session; nothing of it goes on')
    .action(cli.action((context, id: string) => discard(context, id)));
}

async function discard(context: Context, typed: string): Promise<void> {
  const store = await context.store();
  const { id, kind, standing } = await findDoomed(store, typed);
  const what = kind === 'session' ? `the unfinished turn of session "${id}"` : `run "${id}"`;
  await context.confirm(`Drop ${what} (${standing})? It cannot be brought back.`);
  const isDropped = await (await storeAgent(store)).discard(id, { kind });
  // Somebody committed the turn meanwhile: that is not what was asked for. A run that is gone is.
  if (!isDropped && kind === 'session') throw new SDKError('LOUSHO_SESSION_BUSY', { sessionId: id });
  const { out } = context;
  if (out.json) return out.document({ sessionId: id, kind, discarded: true });
  out.note([good('✓ '), `Dropped ${id}.`]);
}

interface Doomed {
  readonly id: string;
  readonly kind: PendingKind;
  readonly standing: string;
}

/** Also a run that cannot be read: dropping it is often all that can be done with it. */
async function findDoomed(store: AgentStore, typed: string): Promise<Doomed> {
  try {
    const found = await findRun(store, typed);
    const { id } = found;
    if (found.type === 'session')
      throw new CliError('LOUSHO_CLI_RUN_NOT_FOUND', `Session "${id}" has no unfinished turn.`);
    const { kind, checkpoint } = found;
    if (kind === 'child')
      throw new CliError('LOUSHO_CLI_USAGE', `"${typed}" is a sub-agent of "${id}".`, {
        hint: 'It is dropped with its lead.',
      });
    return { id, kind, standing: `${checkpoint.status}, step ${checkpoint.stepIndex}` };
  } catch (error) {
    if (!isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT') || error.details.record !== 'checkpoint') throw error;
    const named = classifyCheckpointId(error.details.id);
    if (named.kind === 'session') return { id: named.sessionId, kind: 'session', standing: 'damaged' };
    return { id: error.details.id, kind: 'run', standing: 'damaged' };
  }
}
