/**
 * Whether the process that holds a lease is gone. Only proof counts: whatever is missing, masked or unclear means "not gone", and the
 * lease then ends by its time. The only file that asks the operating system about processes.
 */
import fs from 'node:fs';
import os from 'node:os';
import { threadId } from 'node:worker_threads';
import type { Processes, ProcessFacts } from '../ports.ts';

/** What is asked of the platform. Tests answer for it. */
export interface ProcessReader {
  readonly platform: string;
  readonly pid: number;
  readonly threadId: number;
  hostname(): string;
  /** `undefined` when it cannot be read, whatever the reason. */
  readText(path: string): string | undefined;
  readLink(path: string): string | undefined;
  /** Signal 0. `exists` also when we may not send signals to it. */
  probe(pid: number): 'exists' | 'absent' | 'unknown';
}

/** One for each loaded copy of this module: two copies are two holders. */
const instanceId = crypto.randomUUID();

export function nodeProcesses(reader: ProcessReader = nodeReader): Processes {
  let own: ProcessFacts | undefined;
  const ownFacts = (): ProcessFacts => (own ??= readOwnFacts(reader));
  return {
    own: ownFacts,
    isGone: (holder) => isGone(holder, ownFacts(), reader),
  };
}

function readOwnFacts(reader: ProcessReader): ProcessFacts {
  const { pid, threadId: ownThreadId } = reader;
  return {
    instanceId,
    ...present('host', reader.hostname()),
    pid,
    threadId: ownThreadId,
    ...(reader.platform === 'linux' ? readLinuxFacts(reader) : undefined),
  };
}

function readLinuxFacts(reader: ProcessReader): Partial<ProcessFacts> {
  const stat = parseStat(reader.readText('/proc/self/stat'));
  return {
    ...present('bootId', reader.readText('/proc/sys/kernel/random/boot_id')?.trim()),
    ...present('pidNamespace', reader.readLink('/proc/self/ns/pid')),
    // In a container that sees the /proc of its host, our number there is another one: then nothing in it can be looked up by pid.
    ...(stat?.pid === reader.pid ? { processStartTicks: stat.startTicks } : undefined),
  };
}

function isGone(holder: ProcessFacts, own: ProcessFacts, reader: ProcessReader): boolean {
  if (!isSame(holder.host, own.host) || holder.pid === undefined) return false;
  // 0 and negative numbers name groups of processes.
  if (!Number.isInteger(holder.pid) || holder.pid < 1) return false;
  if (reader.platform === 'linux') return isGoneOnLinux(holder, holder.pid, own, reader);
  return reader.probe(holder.pid) === 'absent';
}

/**
 * Containers share the name and the boot of their host and count their processes from 1, so a pid says something only within one PID
 * namespace, and only together with the time the process started: pids are used again.
 */
function isGoneOnLinux(holder: ProcessFacts, pid: number, own: ProcessFacts, reader: ProcessReader): boolean {
  if (!isSame(holder.bootId, own.bootId) || !isSame(holder.pidNamespace, own.pidNamespace)) return false;
  if (holder.processStartTicks === undefined || own.processStartTicks === undefined) return false;
  switch (reader.probe(pid)) {
    case 'absent':
      return true;
    case 'unknown':
      return false;
    case 'exists': {
      // No entry is no proof: with hidepid, living processes of other users have none.
      const stat = parseStat(reader.readText(`/proc/${pid}/stat`));
      if (stat === undefined || stat.pid !== pid) return false;
      return stat.state === 'Z' || stat.state === 'X' || stat.startTicks !== holder.processStartTicks;
    }
  }
}

function isSame(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && a === b;
}

interface ProcessStat {
  readonly pid: number;
  readonly state: string;
  readonly startTicks: number;
}

/** `/proc/<pid>/stat`: pid, name in brackets, state, ...; the start is field 22. A name may hold spaces and brackets: the last one ends it. */
function parseStat(text: string | undefined): ProcessStat | undefined {
  if (text === undefined) return undefined;
  const pid = Number(text.slice(0, text.indexOf(' ')));
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const state = fields[0] ?? '';
  const startTicks = Number(fields[19]);
  return Number.isInteger(pid) && pid > 0 && Number.isInteger(startTicks) && /^[A-Za-z]$/.test(state)
    ? { pid, state, startTicks }
    : undefined;
}

function present<Key extends string>(key: Key, value: string | undefined): { readonly [K in Key]?: string } {
  return value === undefined || value === '' ? {} : ({ [key]: value } as { readonly [K in Key]: string });
}

const nodeReader: ProcessReader = {
  platform: process.platform,
  pid: process.pid,
  threadId,
  hostname: () => os.hostname(),
  readText: (path) => orUndefined(() => fs.readFileSync(path, 'utf8')),
  readLink: (path) => orUndefined(() => fs.readlinkSync(path)),
  probe(pid) {
    try {
      process.kill(pid, 0);
      return 'exists';
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return code === 'ESRCH' ? 'absent' : code === 'EPERM' ? 'exists' : 'unknown';
    }
  },
};

function orUndefined<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    // Missing, masked or forbidden: the fact is simply not known.
    return undefined;
  }
}

/** Facts of this process, read when they are first needed. */
export const thisMachine: Processes = nodeProcesses();
