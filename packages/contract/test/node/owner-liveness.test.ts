/** A holder is gone only with proof. Each trap of /proc is a row: whatever is missing, masked or unclear means that it may live. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { expect, it } from 'vitest';
import type { ProcessFacts } from '../../src/index.ts';
import { nodeProcesses, thisMachine, type ProcessReader } from '../../src/node.ts';

const HOLDER_PID = 4_711;
const OWN_PID = 815;

interface Machine {
  readonly platform: string;
  readonly host: string;
  readonly texts: { readonly [path: string]: string };
  readonly links: { readonly [path: string]: string };
  readonly probe: 'exists' | 'absent' | 'unknown';
}

/** `/proc/<pid>/stat` as Linux writes it; the start is field 22. */
function stat(pid: number, { state = 'S', startTicks = 1_000, name = 'node' } = {}): string {
  const between = Array.from({ length: 18 }, (_, n) => n + 4).join(' ');
  return `${pid} (${name}) ${state} ${between} ${startTicks} 999 0 0\n`;
}

/** A Linux machine on which the holder does not answer any more. */
const linux: Machine = {
  platform: 'linux',
  host: 'web-1',
  texts: {
    '/proc/self/stat': stat(OWN_PID, { startTicks: 77 }),
    '/proc/sys/kernel/random/boot_id': 'boot-1\n',
  },
  links: { '/proc/self/ns/pid': 'pid:[1]' },
  probe: 'absent',
};
/** It answers, and its entry says this. */
function alive(holderStat: string | undefined, machine: Partial<Machine> = {}): Machine {
  const entry = holderStat === undefined ? {} : { [`/proc/${HOLDER_PID}/stat`]: holderStat };
  return { ...linux, probe: 'exists', ...machine, texts: { ...linux.texts, ...entry } };
}
const holder: ProcessFacts = {
  instanceId: 'other',
  host: 'web-1',
  bootId: 'boot-1',
  pidNamespace: 'pid:[1]',
  pid: HOLDER_PID,
  processStartTicks: 1_000,
  threadId: 0,
};

function readerOf(machine: Machine): ProcessReader {
  return {
    platform: machine.platform,
    pid: OWN_PID,
    threadId: 3,
    hostname: () => machine.host,
    readText: (path) => machine.texts[path],
    readLink: (path) => machine.links[path],
    probe: () => machine.probe,
  };
}

function without(facts: ProcessFacts, ...keys: readonly (keyof ProcessFacts)[]): ProcessFacts {
  const kept = Object.entries(facts).filter(([key]) => !keys.includes(key as keyof ProcessFacts));
  return Object.fromEntries(kept) as unknown as ProcessFacts;
}

type Row = readonly [name: string, machine: Machine, holder: ProcessFacts];
const { ['/proc/sys/kernel/random/boot_id']: _bootId, ...textsWithoutBootId } = linux.texts;

const gone: readonly Row[] = [
  ['its process does not exist', linux, holder],
  ['its process is a zombie', alive(stat(HOLDER_PID, { state: 'Z' })), holder],
  ['its process is dead', alive(stat(HOLDER_PID, { state: 'X' })), holder],
  ['its pid belongs to a process that started later', alive(stat(HOLDER_PID, { startTicks: 1_001 })), holder],
  [
    'the later process has a name made to confuse',
    alive(stat(HOLDER_PID, { startTicks: 2_000, name: 'a) S 1 (x y' })),
    holder,
  ],
  ['it is on another thread of a process that does not exist', linux, { ...holder, threadId: 9 }],
  ['macOS has no such process', { ...linux, platform: 'darwin', texts: {}, links: {} }, holder],
  [
    'Windows has no such process',
    { ...linux, platform: 'win32', texts: {}, links: {} },
    without(holder, 'bootId'),
  ],
];
const maybeAlive: readonly Row[] = [
  ['its process runs', alive(stat(HOLDER_PID)), holder],
  ['its process runs under a name made to confuse', alive(stat(HOLDER_PID, { name: 'a) Z 1 (x y' })), holder],
  ['its process waits for a disk', alive(stat(HOLDER_PID, { state: 'D' })), holder],
  ['its process is stopped', alive(stat(HOLDER_PID, { state: 'T' })), holder],
  ['hidepid hides the entry of another user', alive(undefined), holder],
  ['the entry is empty', alive(''), holder],
  ['the entry is of another pid', alive(stat(1, { startTicks: 5 })), holder],
  ['the entry is cut off', alive(`${HOLDER_PID} (node) S 1 2 3`), holder],
  ['asking for it fails in an unknown way', { ...linux, probe: 'unknown' }, holder],
  ['it runs on another host', linux, { ...holder, host: 'web-2' }],
  [
    'it ran before a reboot, or in a virtual machine of the same name',
    linux,
    { ...holder, bootId: 'boot-2' },
  ],
  ['it runs in another container', linux, { ...holder, pidNamespace: 'pid:[2]' }],
  ['it did not say its host', linux, without(holder, 'host')],
  ['it did not say its boot', linux, without(holder, 'bootId')],
  ['it did not say its container', linux, without(holder, 'pidNamespace')],
  ['it did not say its pid', linux, without(holder, 'pid')],
  ['it did not say when it started', linux, without(holder, 'processStartTicks')],
  ['neither side knows its boot', { ...linux, texts: textsWithoutBootId }, without(holder, 'bootId')],
  ['we cannot read our boot', { ...linux, texts: textsWithoutBootId }, holder],
  ['we cannot read our container', { ...linux, links: {} }, holder],
  [
    'we see the /proc of another container, where our pid is somebody else',
    { ...linux, texts: { ...linux.texts, '/proc/self/stat': stat(1) } },
    holder,
  ],
  ['we have no /proc at all', { ...linux, texts: {}, links: {} }, holder],
  ['we have no host name', { ...linux, host: '' }, { ...holder, host: '' }],
  ['its pid names a group of processes', linux, { ...holder, pid: 0 }],
  ['its pid is negative', linux, { ...holder, pid: -1 }],
  ['its pid is no number', linux, { ...holder, pid: '1' as unknown as number }],
  ['macOS has a process of that pid', { ...linux, platform: 'darwin', probe: 'exists' }, holder],
  ['it runs on another Mac', { ...linux, platform: 'darwin' }, { ...holder, host: 'web-2' }],
];

it.each(gone)('takes the holder for gone when %s', async (_name, machine, facts) => {
  expect(await nodeProcesses(readerOf(machine)).isGone(facts)).toBe(true);
});

it.each(maybeAlive)('waits when %s', async (_name, machine, facts) => {
  expect(await nodeProcesses(readerOf(machine)).isGone(facts)).toBe(false);
});

it('says of itself what others need, and only what it knows', () => {
  const own = nodeProcesses(readerOf(linux)).own();
  expect(own).toEqual({
    ...without(holder, 'instanceId'),
    instanceId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    pid: OWN_PID,
    processStartTicks: 77,
    threadId: 3,
  });
  const bare = nodeProcesses(readerOf({ ...linux, platform: 'darwin', texts: {}, links: {} })).own();
  expect(Object.keys(bare).sort()).toEqual(['host', 'instanceId', 'pid', 'threadId']);
});

it('reads its facts when they are first needed, and once', () => {
  let reads = 0;
  const reader: ProcessReader = { ...readerOf(linux), hostname: () => `host-${(reads += 1)}` };
  const processes = nodeProcesses(reader);
  expect(reads).toBe(0);
  expect(processes.own()).toBe(processes.own());
  expect(reads).toBe(1);
});

it('tells a process that runs from one that has exited, on this machine', async () => {
  const own = thisMachine.own();
  expect(await thisMachine.isGone({ ...own, instanceId: 'another copy of the module' })).toBe(false);
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  await once(child, 'spawn');
  const { pid } = child;
  if (pid === undefined) throw new Error('the child has no pid');
  const childFacts: ProcessFacts = { ...own, instanceId: 'child', pid };
  // Its start is another one, so as facts of the child ours would be a proof; taken from its own entry they are none.
  const ticks =
    process.platform === 'linux' ? nodeProcesses(readerAs(pid)).own().processStartTicks : undefined;
  const facts = ticks === undefined ? childFacts : { ...childFacts, processStartTicks: ticks };
  expect(await thisMachine.isGone(facts)).toBe(false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await thisMachine.isGone(facts)).toBe(true);
});

/** Reads this machine as the process with that pid would. */
function readerAs(pid: number): ProcessReader {
  const real = nodeProcesses();
  return {
    platform: process.platform,
    pid,
    threadId: 0,
    hostname: () => real.own().host ?? '',
    readText: (path) => fs.readFileSync(path.replace('/proc/self/', `/proc/${pid}/`), 'utf8'),
    readLink: () => real.own().pidNamespace,
    probe: () => 'exists',
  };
}
