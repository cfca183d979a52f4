// What a checkpoint holds, in a few bytes: a process logs it with each save that was acknowledged, and the checker compares it with what
// is stored later.
import { createHash } from 'node:crypto';
import { canonicalJson, lastStep } from '@lousho/contract';

const textHashes = new WeakMap();

/** One text for each length from 0 on. A transcript that goes on from another one has the same text at that one's length. */
export function chainsOf(messages) {
  const chains = [''];
  for (const message of messages) chains.push(sha256(chains.at(-1) + hashOf(message)));
  return chains;
}

export function hashOf(value) {
  let hash = textHashes.get(value);
  if (hash === undefined) textHashes.set(value, (hash = sha256(canonicalJson(value))));
  return hash;
}

/** `position` counts the model's responses in the whole conversation, from 1. */
export function digestOf(checkpoint) {
  const { runId, status, stepIndex, usage, messages, settledResults, approvals, inputIds } = checkpoint;
  const step = lastStep(messages);
  const placed = step === undefined ? [] : step.calls.slice(0, step.answered);
  return {
    runId,
    status,
    stepIndex,
    modelCalls: usage.modelCalls,
    messageCount: messages.length,
    chain: chainsOf(messages).at(-1),
    position: messages.filter(({ role }) => role === 'assistant').length,
    hasOpenStep: step !== undefined && step.calls.length > step.answered,
    resultsOfStep: [...placed, ...settledResults].map(({ toolCallId }) => toolCallId),
    settled: settledResults.map((result) => [result.toolCallId, hashOf(result)]),
    decisions: approvals
      .filter(({ decision }) => decision !== undefined)
      .map(({ id, toolCallId, decision }) => ({
        id,
        callId: toolCallId,
        approved: decision.approved,
        by: decision.by,
      })),
    // The last ones: those before are in earlier digests.
    inputIds: inputIds.slice(-3),
  };
}

function sha256(text) {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
