/** What a stretch of work cost this process: time, CPU, bytes written, memory, files. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

/** @returns a function that tells the cost since this call */
export function startMeter() {
  const startedAtMs = performance.now();
  const cpu = process.cpuUsage();
  const written = writtenBytes();
  return () => {
    const wallMs = performance.now() - startedAtMs;
    const { user, system } = process.cpuUsage(cpu);
    return {
      wallMs,
      cpuMs: (user + system) / 1000,
      writeBytes: writtenBytes() - written,
      maxRssMb: process.resourceUsage().maxRSS / 1024,
    };
  };
}

export function directoryBytes(directory) {
  return readdirSync(directory, { recursive: true })
    .map((name) => statSync(path.join(directory, name)))
    .filter((entry) => entry.isFile())
    .reduce((total, entry) => total + entry.size, 0);
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Bytes that this process sent towards a disk; NaN where the platform does not count them (all but Linux). */
function writtenBytes() {
  if (!existsSync('/proc/self/io')) return Number.NaN;
  return Number(/^write_bytes: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))[1]);
}
