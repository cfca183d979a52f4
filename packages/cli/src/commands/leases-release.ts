/** `lousho leases release <id>`: gives back the lease of a holder that is gone; with `--force`, takes it from one that may live. */
import { SDKError, platformIds, type CheckpointStore, type LeaseRecord } from '@lousho/contract';
import { CliError } from '../cli-error.ts';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { findRun } from '../find-run.ts';
import { holderName, leaseFreeAtMs } from '../leases.ts';
import { good } from '../terminal/styled-line.ts';

interface ReleaseOptions {
  readonly force?: boolean;
}

export function registerLeasesRelease(cli: Cli): void {
  cli
    .group('leases', 'who executes which run')
    .command('release <id>')
    .description('free a run whose holder is gone; other processes do so by themselves, a little later')
    .option(
      '--force',
      'also when the holder may live: its next save is refused, what it does meanwhile is not undone',
    )
    .action(cli.action((context, id: string, options: ReleaseOptions) => release(context, id, options)));
}

/** Of a stale lease, as the next process would take it; nobody who lives loses a run without `--force`. */
async function release(context: Context, typed: string, { force = false }: ReleaseOptions): Promise<void> {
  const checkpoints = await context.checkpoints();
  const id = await leaseIdOf(context, typed);
  const held = await checkpoints.heldLeases?.();
  const lease = held?.find((record) => record.id === id);
  if (held !== undefined && lease === undefined)
    throw new CliError('LOUSHO_CLI_RUN_NOT_FOUND', `Nobody holds the lease of "${typed}".`);
  if (!(await releaseStale(checkpoints, id))) {
    if (!force) throw stillHeld(id, lease);
    await releaseHeld(context, id, lease);
  }
  const { out } = context;
  if (out.json) return out.document({ id, released: true, fence: lease?.fence });
  out.note([
    good('✓ '),
    `${typed} is free. recover() goes on with it, or ${context.command('resume', typed)}.`,
  ]);
}

/** Leases have the ids of checkpoints: that of a session's turn is found by the session. */
async function leaseIdOf(context: Context, typed: string): Promise<string> {
  const held = await (await context.checkpoints()).heldLeases?.();
  if (held?.some(({ id }) => id === typed)) return typed;
  const found = await findRun(await context.store(), typed);
  return found.type === 'run' ? found.checkpointId : typed;
}

/** Just long enough to give it back. */
const LEASE_MS = 1_000;

/** Taken by the rules for everybody, and given back at once. `false`: its holder may live. */
async function releaseStale(checkpoints: CheckpointStore, id: string): Promise<boolean> {
  if (checkpoints.acquireLease === undefined || checkpoints.releaseLease === undefined)
    throw new CliError('LOUSHO_CLI_UNSUPPORTED', 'The store has no leases.');
  const owner = `release-${platformIds.random()}`;
  const lease = await checkpoints.acquireLease(id, owner, LEASE_MS);
  if (lease === false) return false;
  await checkpoints.releaseLease(id, owner, lease === true ? undefined : lease.fence);
  return true;
}

async function releaseHeld(context: Context, id: string, lease: LeaseRecord | undefined): Promise<void> {
  if (lease === undefined)
    throw new CliError('LOUSHO_CLI_UNSUPPORTED', 'The store does not tell who holds the lease.');
  await context.confirm(`Take "${id}" from ${holderName(lease)}, which may be executing it?`);
  const checkpoints = await context.checkpoints();
  await checkpoints.releaseLease?.(id, lease.owner, lease.fence);
}

function stillHeld(id: string, lease: LeaseRecord | undefined): SDKError {
  const free = lease === undefined ? undefined : { leaseFreeAtMs: leaseFreeAtMs(lease) };
  const who = lease === undefined ? 'somebody' : holderName(lease);
  return new SDKError(
    'LOUSHO_SESSION_BUSY',
    { sessionId: id, ...free },
    { message: `The lease of "${id}" is held by ${who}, which may be executing it. --force takes it away.` },
  );
}
