/** Pruning: what is old and that nothing needs goes, all of it, and nothing else. */
import type { PruneOptions, PruneResult } from '@lousho/contract';
import { manualClock, testPorts } from '@lousho/testing';
import { beforeEach, expect, it } from 'vitest';
import type { SqliteStore, SqliteStoreOptions } from '../src/index.ts';
import fs from 'node:fs';
import { approvalRecord, awaitingApproval, finished, inProgress, sessionRecord } from './support/fixtures.ts';
import { openOnPlatform, openStore, rawDatabase, tempFile } from './support/temp-store.ts';

const DAY_MS = 24 * 60 * 60_000;
const nothing: PruneResult = { checkpoints: 0, historyEntries: 0, approvals: 0, sessions: 0 };

/** A lease counts as live for one period more than it says: clocks may disagree. */
const LEASE_ENDS_MS = 60_000;

let clock: ReturnType<typeof manualClock>;
let file: string;
let store: SqliteStore;
beforeEach(() => {
  clock = manualClock();
  open();
});

function open(options: SqliteStoreOptions = {}): void {
  file = tempFile();
  store = openStore(file, { ports: testPorts(clock), ...options });
}

/** The time now, less so many days. */
function daysAgo(days: number): { readonly savedAt: string } {
  return { savedAt: new Date(clock.wallMs() - days * DAY_MS).toISOString() };
}
async function prune(options: Partial<PruneOptions> = {}): Promise<PruneResult> {
  return store.prune({ olderThanMs: 10 * DAY_MS, ...options });
}
async function storedIds(): Promise<string[]> {
  return (await store.checkpoints.list()).map(({ sessionId }) => sessionId).sort();
}

it('removes finished runs that were saved last before the limit, with their history', async () => {
  await store.checkpoints.save('old', inProgress(daysAgo(12)));
  await store.checkpoints.save('old', finished(daysAgo(11)));
  await store.checkpoints.save('young', finished(daysAgo(9)));
  await store.checkpoints.save('unfinished', inProgress(daysAgo(99)));
  expect(await prune()).toEqual({ ...nothing, checkpoints: 1, historyEntries: 2 });
  expect(await storedIds()).toEqual(['unfinished', 'young']);
  expect(await store.checkpoints.history('old')).toEqual([]);
  expect(await prune()).toEqual(nothing);
});

it('removes runs of the statuses that it is told', async () => {
  await store.checkpoints.save('done', finished(daysAgo(11)));
  await store.checkpoints.save('stuck', inProgress(daysAgo(11)));
  expect(await prune({ statuses: ['in-progress'] })).toMatchObject({ checkpoints: 1 });
  expect(await storedIds()).toEqual(['done']);
});

it('counts the same in a dry run, and removes nothing', async () => {
  await store.checkpoints.save('old', finished(daysAgo(11)));
  await store.approvals.save(approvalRecord('left', { checkpointId: 'old' }));
  await store.sessions.saveIfRevision(sessionRecord('chat', daysAgo(11)), 0);
  const counted = await prune({ dryRun: true });
  expect(counted).toEqual({ checkpoints: 1, historyEntries: 1, approvals: 1, sessions: 1 });
  expect(await storedIds()).toEqual(['old']);
  expect(await prune()).toEqual(counted);
  expect(await storedIds()).toEqual([]);
  expect(await store.approvals.list()).toEqual([]);
  expect(await store.sessions.load('chat')).toBeNull();
});

it('leaves a run alone while somebody executes it', async () => {
  await store.checkpoints.save('order-7', finished(daysAgo(11)));
  await store.checkpoints.acquireLease('order-7', 'holder', 30_000);
  expect(await prune()).toEqual(nothing);
  await clock.advance(LEASE_ENDS_MS);
  expect(await prune()).toMatchObject({ checkpoints: 1 });
});

it('leaves everything that an undecided approval needs, whatever the statuses', async () => {
  await store.checkpoints.save('order-7', inProgress(daysAgo(99)));
  await store.checkpoints.save('order-7', awaitingApproval('a-1', daysAgo(98)));
  await store.approvals.save(approvalRecord('a-1'));
  expect(await prune({ statuses: ['awaiting-approval', 'in-progress', 'finished'] })).toEqual(nothing);
  expect(await store.checkpoints.history('order-7')).toHaveLength(2);
  expect(await store.approvals.load('a-1')).not.toBeNull();
});

it('removes old approvals that no run waits on, and keeps young ones and those that carry their run', async () => {
  const old = { createdAt: daysAgo(11).savedAt, checkpointId: 'gone' };
  await store.approvals.save(approvalRecord('orphan', old));
  await store.approvals.save(approvalRecord('young', { ...old, createdAt: daysAgo(1).savedAt }));
  await store.approvals.save(approvalRecord('carries-run', { ...old, snapshot: { checkpoints: [] } }));
  expect(await prune()).toEqual({ ...nothing, approvals: 1 });
  expect((await store.approvals.list()).map(({ id }) => id)).toEqual(['carries-run', 'young']);
});

it('removes sub-agents with their lead or when they are orphans, never before', async () => {
  const child = (leadId: string): string => `${leadId}.sub-abcd1234-1-0`;
  await store.checkpoints.save('old', finished(daysAgo(11)));
  await store.checkpoints.save(child('old'), inProgress(daysAgo(1)));
  await store.checkpoints.save('working', inProgress(daysAgo(11)));
  await store.checkpoints.save(child('working'), finished(daysAgo(11)));
  await store.checkpoints.save(child('gone'), inProgress(daysAgo(11)));
  await store.checkpoints.save(child('just-gone'), inProgress(daysAgo(1)));
  expect(await prune()).toMatchObject({ checkpoints: 3 });
  expect(await storedIds()).toEqual([child('just-gone'), 'working', child('working')].sort());
});

it('leaves a lead whose sub-agent somebody executes, or which waits for a person', async () => {
  await store.checkpoints.save('lead', finished(daysAgo(11)));
  await store.checkpoints.save('lead.sub-abcd1234-1-0', awaitingApproval('a-1', daysAgo(11)));
  expect(await prune()).toEqual(nothing);
  await store.checkpoints.save('lead.sub-abcd1234-1-0', inProgress(daysAgo(11)));
  await store.checkpoints.acquireLease('lead.sub-abcd1234-1-0', 'holder', 30_000);
  expect(await prune()).toEqual(nothing);
  await clock.advance(LEASE_ENDS_MS);
  expect(await prune()).toMatchObject({ checkpoints: 2 });
});

it('leaves what a run that was only just begun is about to need', async () => {
  const old = { createdAt: daysAgo(11).savedAt, checkpointId: 'order-7' };
  await store.approvals.save(approvalRecord('a-1', old));
  await store.checkpoints.save('order-7.sub-abcd1234-1-0', inProgress(daysAgo(11)));
  await store.checkpoints.acquireLease('order-7', 'holder', 30_000);
  await store.checkpoints.save('order-8', inProgress(daysAgo(11)));
  await store.checkpoints.delete('order-8', { keepHistory: true });
  await store.checkpoints.acquireLease('order-8', 'holder', 30_000);
  expect(await prune()).toEqual(nothing);
});

it('leaves an approval while its own decision is waited for, and drops one beside it that is not', async () => {
  const old = { createdAt: daysAgo(11).savedAt };
  await store.checkpoints.save('order-7', awaitingApproval('a-2', daysAgo(11)));
  await store.approvals.save(approvalRecord('a-1', old));
  await store.approvals.save(approvalRecord('a-2', old));
  expect(await prune()).toEqual({ ...nothing, approvals: 1 });
  expect((await store.approvals.list()).map(({ id }) => id)).toEqual(['a-2']);
});

it('removes a conversation together with its last turn', async () => {
  await store.sessions.saveIfRevision(sessionRecord('chat', daysAgo(11)), 0);
  await store.checkpoints.save('chat.turn-3', finished(daysAgo(11)));
  expect(await prune()).toMatchObject({ checkpoints: 1, sessions: 1 });
});

it('removes the old claims of schedules, which are no runs', async () => {
  await store.checkpoints.save('nightly.fire', inProgress(daysAgo(11)));
  expect(await prune()).toMatchObject({ checkpoints: 1 });
});

it.each([-1, Number.NaN])('refuses the age %d', async (olderThanMs) => {
  await expect(prune({ olderThanMs })).rejects.toMatchObject({ code: 'LOUSHO_CONFIG_INVALID' });
});

it('leaves the history of a run that stays alone', async () => {
  await store.checkpoints.save('stuck', inProgress(daysAgo(13)));
  await store.checkpoints.save('stuck', inProgress(daysAgo(11)));
  expect(await prune()).toEqual(nothing);
  expect(await store.checkpoints.history('stuck')).toHaveLength(2);
});

it('drops a history that outlived its run', async () => {
  await store.checkpoints.save('deleted', finished(daysAgo(11)));
  await store.checkpoints.delete('deleted', { keepHistory: true });
  expect(await prune()).toEqual({ ...nothing, historyEntries: 1 });
  expect(await store.checkpoints.history('deleted')).toEqual([]);
});

it('removes old conversations, but none with a turn under way', async () => {
  await store.sessions.saveIfRevision(sessionRecord('old', daysAgo(11)), 0);
  await store.sessions.saveIfRevision(sessionRecord('young', daysAgo(1)), 0);
  await store.sessions.saveIfRevision(sessionRecord('paused', daysAgo(11)), 0);
  await store.checkpoints.save('paused.turn-3', awaitingApproval('a-1', daysAgo(11)));
  await store.sessions.saveIfRevision(sessionRecord('busy', daysAgo(11)), 0);
  await store.checkpoints.acquireLease('busy.turn-8', 'holder', 30_000);
  expect(await prune({ statuses: ['in-progress'] })).toMatchObject({ sessions: 0 });
  expect(await prune()).toMatchObject({ sessions: 1 });
  expect(await store.sessions.list()).toEqual(['busy', 'paused', 'young']);
});

it('is reachable through the checkpoint part too', async () => {
  await store.checkpoints.save('old', finished(daysAgo(11)));
  expect(await store.checkpoints.prune({ olderThanMs: DAY_MS })).toMatchObject({ checkpoints: 1 });
});

it('drops finished runs by itself once they are older than the retention, as the store is used', async () => {
  open({ retentionMs: DAY_MS });
  await store.checkpoints.save('done', finished(daysAgo(0)));
  await store.checkpoints.save('stuck', inProgress(daysAgo(30)));
  await store.sessions.saveIfRevision(sessionRecord('chat', daysAgo(30)), 0);
  await clock.advance(DAY_MS - 1);
  await store.checkpoints.save('busy', inProgress(daysAgo(0)));
  expect(await storedIds()).toEqual(['busy', 'done', 'stuck']);
  await clock.advance(60 * 60_000);
  await store.checkpoints.save('busy', inProgress(daysAgo(0)));
  expect(await storedIds()).toEqual(['busy', 'stuck']);
  expect(await store.checkpoints.history('done')).toEqual([]);
  expect(await store.sessions.load('chat')).not.toBeNull();
});

it('keeps the end of a turn that its conversation may not hold yet, as long as that stays', async () => {
  open({ retentionMs: DAY_MS });
  await store.sessions.saveIfRevision(sessionRecord('chat', daysAgo(0)), 0);
  await store.checkpoints.save('chat.turn-1', finished(daysAgo(0)));
  await store.checkpoints.save('new.turn-0', finished(daysAgo(0)));
  await clock.advance(2 * DAY_MS);
  await store.checkpoints.save('busy', inProgress(daysAgo(0)));
  expect(await storedIds()).toEqual(['busy', 'chat.turn-1', 'new.turn-0']);
  await store.sessions.saveIfRevision(sessionRecord('chat', daysAgo(0)), 1);
  expect(await store.prune({ olderThanMs: DAY_MS })).toMatchObject({ checkpoints: 1, sessions: 0 });
  await store.checkpoints.save('talk.turn-1', finished(daysAgo(11)));
  await store.checkpoints.save('talk.transcript', inProgress(daysAgo(11)));
  expect(await prune()).toEqual(nothing);
  expect(await storedIds()).toEqual(['busy', 'chat.turn-1', 'talk.transcript', 'talk.turn-1']);
});

it('keeps finished runs without a retention', async () => {
  await store.checkpoints.save('done', finished(daysAgo(9_999)));
  await clock.advance(DAY_MS);
  await store.checkpoints.save('busy', inProgress());
  expect(await storedIds()).toEqual(['busy', 'done']);
});

it('leaves what is left to SQLite, and cuts the write-ahead log', async () => {
  for (let n = 0; n < 20; n += 1)
    await store.checkpoints.save(
      `order-${n}`,
      finished({ ...daysAgo(11), businessState: 'x'.repeat(5_000) }),
    );
  await prune();
  expect(fs.statSync(`${file}-wal`).size).toBe(0);
  expect(rawDatabase(file).prepare('SELECT count(*) FROM events').pluck().get()).toBe(0);
});

it('removes more than one batch takes', async () => {
  await Promise.all(
    Array.from({ length: 250 }, (_, n) => store.checkpoints.save(`order-${n}`, finished(daysAgo(11)))),
  );
  expect(await prune({ dryRun: true })).toMatchObject({ checkpoints: 250, historyEntries: 250 });
  expect(await prune()).toMatchObject({ checkpoints: 250, historyEntries: 250 });
  expect(await storedIds()).toEqual([]);
});

it('goes by the last save, not by when the run ended', async () => {
  await store.checkpoints.save('order-7', finished(daysAgo(20)));
  await store.checkpoints.save('order-7', finished(daysAgo(1)));
  expect(await prune()).toEqual(nothing);
});

it('leaves a run alone whose time or whose record nobody can read', async () => {
  await store.checkpoints.save('order-7', finished({ savedAt: 'yesterday' }));
  await store.checkpoints.save('order-8', finished(daysAgo(11)));
  rawDatabase(file).exec('UPDATE events SET sum = sum + 1 WHERE k >> 24 = 2');
  expect(await prune()).toEqual(nothing);
});

it.each([Number.MAX_SAFE_INTEGER, Infinity])('removes nothing that is %d ms old', async (olderThanMs) => {
  await store.checkpoints.save('order-7', finished({ savedAt: '1969-12-31T00:00:00.000Z' }));
  await store.checkpoints.save('order-8', finished(daysAgo(9_999)));
  await store.approvals.save(approvalRecord('a-1', { createdAt: daysAgo(9_999).savedAt }));
  expect(await prune({ olderThanMs })).toEqual(nothing);
});

it('counts no more history than is kept', async () => {
  open({ historyLimit: 2 });
  for (let n = 0; n < 5; n += 1) await store.checkpoints.save('order-7', finished(daysAgo(11)));
  expect(await prune()).toMatchObject({ checkpoints: 1, historyEntries: 2 });
});

it('reports a retention that fails, and saves all the same', async () => {
  file = tempFile();
  const {
    store: parts,
    connection,
    warnings,
  } = openOnPlatform(file, {
    ports: testPorts(clock),
    retentionMs: DAY_MS,
  });
  await parts.checkpoints.save('old', finished(daysAgo(0)));
  connection.exec("CREATE TRIGGER keep BEFORE DELETE ON runs BEGIN SELECT raise(ABORT, 'kept'); END");
  await clock.advance(2 * DAY_MS);
  await parts.checkpoints.save('busy', inProgress());
  expect(await parts.checkpoints.load('busy')).toEqual(inProgress());
  expect(warnings).toEqual([expect.stringContaining('could not be written (prune)')]);
});
