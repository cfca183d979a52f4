/** Tracing never decides about a run: whatever it throws or forgets, the work is done once, and what that came to counts. */
import type { Telemetry } from '@lousho/contract';

/** The same telemetry, which cannot fail any more. What it does not have stays absent, and costs nothing. */
export function harmless(given: Telemetry): Telemetry {
  const wrappers: Telemetry = {
    segment: (info, work) => onceAround(work, (once) => given.segment?.(info, once)),
    modelCall: (info, work) => onceAround(work, (once) => given.modelCall?.(info, once)),
    toolCall: (info, work) => onceAround(work, (once) => given.toolCall?.(info, once)),
    onFirstChunk: (info) => quietly(() => given.onFirstChunk?.(info)),
    onCheckpoint: (info) => quietly(() => given.onCheckpoint?.(info)),
    onApproval: (info) => quietly(() => given.onApproval?.(info)),
    traceparent: (info) => quietly(() => given.traceparent?.(info)),
  };
  const there = Object.entries(wrappers).filter(([name]) => given[name as keyof Telemetry] !== undefined);
  return Object.fromEntries(there);
}

async function onceAround<Value>(
  work: () => Promise<Value>,
  wrap: (once: () => Promise<Value>) => Promise<unknown> | undefined,
): Promise<Value> {
  let outcome: Promise<Value> | undefined;
  const once = (): Promise<Value> => (outcome ??= work());
  try {
    await wrap(once);
  } catch {
    // The work's own failure is in `outcome`; one of the tracer is no matter of the run.
  }
  return outcome ?? once();
}

function quietly<Value>(tell: () => Value): Value | undefined {
  try {
    return tell();
  } catch {
    // A tracer that fails is no matter of the run.
    return undefined;
  }
}
