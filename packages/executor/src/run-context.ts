/** What a dynamic agent's functions see of a run. */
import { deepFreeze, type Checkpoint, type Message, type RunContext } from '@lousho/contract';

export function runContext(
  {
    sessionId,
    metadata,
    principal,
  }: { readonly [Part in 'sessionId' | 'metadata' | 'principal']?: RunContext[Part] | undefined },
  input: readonly Message[],
): RunContext {
  return deepFreeze({
    input,
    ...(sessionId === undefined ? undefined : { sessionId }),
    metadata: metadata ?? {},
    ...(principal === undefined ? undefined : { principal }),
  });
}

/** What they saw when the run began. */
export function savedContext(stored: Checkpoint, sessionId: string | undefined): RunContext {
  const { messages, runInput, metadata, principal, runConfig } = stored;
  const input = messages.slice(runInput.start, runInput.start + runInput.count);
  return runConfig?.ctx ?? runContext({ sessionId, metadata, principal }, input);
}
