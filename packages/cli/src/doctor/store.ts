/** Whether the store opens, what it promises, and what is wrong with what is in it. */
import { SDKError, type AgentStore, type StoreClaims } from '@lousho/contract';
import { fileSystemType, networkKind } from '@lousho/contract/node';
import path from 'node:path';
import { CliError } from '../cli-error.ts';
import { listedRuns } from '../commands/runs-list.ts';
import type { Context } from '../context.ts';
import { heldLeases } from '../leases.ts';
import type { OpenedStore } from '../open-store.ts';
import type { ListedRun } from '../run-table.ts';
import { storeSpecOf } from '../store-spec.ts';
import { count } from '../terminal/words.ts';
import { waitingApprovals } from '../waiting-approvals.ts';
import type { Finding } from './finding.ts';

export interface StoreChecks {
  /** Whether to read everything. Else that is left to what is not over: it is what somebody waits for. */
  readonly deep: boolean;
}

/** What a check throws is its finding: the others go on. */
export async function checkStore(context: Context, { deep }: StoreChecks): Promise<Finding[]> {
  let opened: OpenedStore;
  try {
    if (!(await context.namesStore())) return [noStore];
    opened = await context.openedStore();
  } catch (error) {
    return [failed('store', error)];
  }
  const { store } = opened;
  const checks: readonly (readonly [Finding['topic'], () => Finding[] | Promise<Finding[]>])[] = [
    ['store', () => describeStore(opened, context)],
    ['runs', async () => checkRuns(store, await listedRuns(context), { context, deep })],
    ['approvals', async () => checkApprovals(store, context)],
    ['leases', async () => checkLeases(store, context)],
  ];
  const findings: Finding[] = [];
  for (const [topic, check] of checks) {
    try {
      findings.push(...(await check()));
    } catch (error) {
      findings.push(failed(topic, error));
    }
  }
  return findings;
}

const noStore: Finding = {
  level: 'note',
  topic: 'store',
  message: 'No store was given, so none was looked into.',
  hint: 'Give --store sqlite:./jobs.db or --store file:./folder, or name it in lousho.config.ts.',
};

function describeStore({ store, place }: OpenedStore, { cwd }: Context): Finding[] {
  const where = place === undefined ? 'made by the configuration' : storeSpecOf(place, cwd);
  const claims = store.checkpoints?.claims;
  const opens: Finding = {
    level: 'fine',
    topic: 'store',
    message: `${where} opens${claims === undefined ? '' : `: ${claimsText(claims)}`}`,
  };
  const folder = place === undefined || place.kind === 'module' ? undefined : path.dirname(place.path);
  const network = folder === undefined ? undefined : networkKind(fileSystemType(folder));
  const findings = [opens];
  if (network !== undefined)
    findings.push({
      level: 'wrong',
      topic: 'store',
      message: `it lies on ${network}, where leases hold among the processes of one machine only`,
      hint: 'Put it on a local disk, or let no other machine use it.',
    });
  if (claims !== undefined && claims.leases !== 'atomic')
    findings.push({
      level: 'note',
      topic: 'store',
      message: `its leases are ${claims.leases}: two processes may execute one run (N9, N10)`,
    });
  return findings;
}

function claimsText({ leases, durable, consistency, history, list }: StoreClaims): string {
  const parts = [`${leases} leases`, `survives ${survives[durable]}`, `${consistency} consistency`];
  return [...parts, ...(history ? [] : ['no history']), ...(list ? [] : ['no list'])].join(', ');
}

const survives = { power: 'a power cut', process: 'the death of a process', memory: 'nothing' } as const;

async function checkRuns(
  store: AgentStore,
  runs: readonly ListedRun[],
  { context, deep }: StoreChecks & { readonly context: Context },
): Promise<Finding[]> {
  const of = (state: ListedRun['state']) => runs.filter((run) => run.state === state);
  const suspects = runs.filter(({ status, state }) => state !== 'damaged' && (deep || status !== 'finished'));
  const damaged = [
    ...of('damaged'),
    ...(await unreadable(suspects, ({ checkpointId }) => store.checkpoints?.load(checkpointId), context)),
    ...(deep ? await damagedSessions(store, context) : []),
  ];
  const [parked, failedRuns, waiting, interrupted] = [
    of('parked'),
    of('failed'),
    of('awaiting-approval'),
    of('interrupted'),
  ];
  const counts = [
    count(runs.length, 'run'),
    `${of('running').length} running`,
    `${waiting.length} waiting for a person`,
    `${interrupted.length} interrupted`,
    `${failedRuns.length} failed`,
  ];
  const findings: Finding[] = [{ level: 'fine', topic: 'runs', message: counts.join(', ') }];
  if (damaged.length > 0)
    findings.push({
      level: 'wrong',
      topic: 'runs',
      message: `${count(damaged.length, 'record is', 'records are')} damaged: ${names(damaged)}`,
      hint: 'Restore them from a backup, or drop them with lousho discard.',
    });
  if (parked.length > 0)
    findings.push({
      level: 'wrong',
      topic: 'runs',
      message: `recover() gave up on ${count(parked.length, 'run')}: ${names(parked)}`,
      hint: 'lousho show says why; lousho resume starts one again.',
    });
  const stuck = failedRuns.filter(
    ({ header }) => header?.status === 'in-progress' && header.lastError?.retryable === false,
  );
  if (stuck.length > 0)
    findings.push({
      level: 'wrong',
      topic: 'runs',
      message: `${count(stuck.length, 'run')} would fail the same way again: ${names(stuck)}`,
      hint: 'lousho show says why; mend the cause, then lousho resume, or lousho discard.',
    });
  return findings;
}

async function damagedSessions({ sessions }: AgentStore, context: Context): Promise<Named[]> {
  const ids = (await sessions?.list?.()) ?? [];
  return unreadable(
    ids.map((id) => ({ id })),
    ({ id }) => sessions?.load(id),
    context,
  );
}

interface Named {
  readonly id: string;
}

/** A list reads the ends of a record only: what lies between shows when all of it is read. */
async function unreadable<Item extends Named>(
  items: readonly Item[],
  load: (item: Item) => Promise<unknown> | undefined,
  { out }: Context,
): Promise<Item[]> {
  const damaged: Item[] = [];
  for (const [index, item] of items.entries()) {
    if (index % PROGRESS_EVERY === 0) out.progress(`read ${index} of ${items.length}`);
    try {
      await load(item);
    } catch (error) {
      if (!(error instanceof SDKError) || error.code !== 'LOUSHO_CHECKPOINT_CORRUPT') throw error;
      damaged.push(item);
    }
  }
  out.progress(undefined);
  return damaged;
}

const PROGRESS_EVERY = 100;

async function checkApprovals(store: AgentStore, { nowMs }: Context): Promise<Finding[]> {
  const waiting = await waitingApprovals(store);
  const expired = waiting.filter(({ expiresAt }) => expiresAt !== undefined && Date.parse(expiresAt) < nowMs);
  const findings: Finding[] = [
    { level: 'fine', topic: 'approvals', message: `${count(waiting.length, 'decision')} to make` },
  ];
  if (expired.length > 0)
    findings.push({
      level: 'note',
      topic: 'approvals',
      message: `${count(expired.length, 'has', 'have')} expired and no process with recover() has denied them yet`,
    });
  return findings;
}

async function checkLeases(store: AgentStore, { nowMs }: Context): Promise<Finding[]> {
  const leases = store.checkpoints && (await heldLeases(store.checkpoints, nowMs));
  if (leases === undefined) return [];
  const stale = leases.filter(({ state }) => state === 'stale');
  const message = `${count(leases.length - stale.length, 'run executes', 'runs execute')}`;
  if (stale.length === 0) return [{ level: 'fine', topic: 'leases', message }];
  return [
    { level: 'fine', topic: 'leases', message },
    {
      level: 'note',
      topic: 'leases',
      message: `${count(stale.length, 'process', 'processes')} died with a run: ${names(stale)}`,
      hint: 'A process with agent.recover() finishes them; lousho resume does one by hand.',
    },
  ];
}

const SHOWN_NAMES = 5;

function names(records: readonly Named[]): string {
  const shown = records.slice(0, SHOWN_NAMES).map(({ id }) => id);
  const more = records.length - shown.length;
  return more === 0 ? shown.join(', ') : `${shown.join(', ')} and ${more} more`;
}

function failed(topic: Finding['topic'], error: unknown): Finding {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof SDKError || error instanceof CliError ? error.hint : undefined;
  return { level: 'wrong', topic, message, ...(hint === undefined ? undefined : { hint }) };
}
