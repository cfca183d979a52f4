// What must be true at the end with a real model, whatever it called: only what is promised, nothing about what the model chose to do.
import { callsHaveOneResult, noStoredResponseAskedAgain, verdict } from './check.mjs';

/** The tools that have an effect, and where the ledger has it. */
const effectsOf = { charge_card: 'charges', ship_order: 'shipments', send_email: 'emails' };

/**
 * `starts`: for each process `{ process, stored }`, the run as the store held it when the process started.
 * `approvedIds`: of the approvals that the person said yes to.
 */
export function checkLiveOutcome({ checkpoint, ledger, starts, approvedIds }) {
  if (checkpoint === null) return [verdict('the store holds the run', ['it holds none'])];
  const calls = callsIn(checkpoint);
  return [
    runIsOver(checkpoint),
    callsHaveOneResult(checkpoint),
    ...Object.entries(effectsOf).map(([tool, name]) => happenedOnceACall(tool, ledger[name], ledger, calls)),
    refundsWereApproved(ledger, calls, approvedIds),
    noStoredResponseAskedAgain(checkpoint, ledger, starts),
    noRecordedCallRunAgain(ledger, starts),
    storedMessagesStayed(checkpoint, starts),
  ];
}

function runIsOver({ status, finishReason, stepIndex }) {
  return verdict(
    'the run is over',
    status === 'finished' ? [] : [`the run is ${status}`],
    `${finishReason}, ${stepIndex} model responses`,
  );
}

/** By step and id: a service may use one id in many responses. */
function callsIn({ messages, settledResults }) {
  const calls = new Map();
  let step = 0;
  for (const message of messages) {
    if (message.role === 'assistant') {
      step += 1;
      for (const part of message.content)
        if (part.type === 'tool-call') calls.set(keyOf(step, part.toolCallId), { toolName: part.toolName });
    }
    if (message.role === 'tool') setResult(calls, step, message.content[0]);
  }
  for (const result of settledResults) setResult(calls, step, result);
  return calls;
}

function setResult(calls, step, result) {
  const call = calls.get(keyOf(step, result.toolCallId));
  if (call !== undefined) call.result = result;
}

function keyOf(step, toolCallId) {
  return `${step}:${toolCallId}`;
}

/** A call that has its tool's own result took effect once; no call did twice, and nothing happened without a call. */
function happenedOnceACall(tool, effects, { attempts }, calls) {
  const problems = [];
  const keysOfCalls = new Set();
  let callCount = 0;
  for (const [call, { toolName, result }] of calls) {
    if (toolName !== tool) continue;
    callCount += 1;
    const keys = new Set(
      attempts
        .filter(({ step, tool_call_id: id }) => keyOf(step, id) === call)
        .map((attempt) => attempt.idempotency_key),
    );
    if (keys.size > 1) problems.push(`${tool} ${call} had ${keys.size} idempotency keys`);
    const count = effects.filter((effect) => keys.has(effect.idempotency_key)).length;
    const isDone = result !== undefined && result.kind === undefined;
    if (count > 1 || (isDone && count === 0)) problems.push(`${tool} ${call} took effect ${count} times`);
    for (const key of keys) keysOfCalls.add(key);
  }
  const strays = effects.filter((effect) => !keysOfCalls.has(effect.idempotency_key)).length;
  if (strays > 0) problems.push(`${tool} took effect ${strays} times without a call`);
  return verdict(`each call of ${tool} took effect once`, problems, `${callCount} calls`);
}

/** A call that a person approved runs at most once. */
function refundsWereApproved({ refunds, attempts }, calls, approvedIds) {
  const problems = [];
  let approvedCount = 0;
  for (const [call, { toolName, result }] of calls) {
    if (toolName !== 'refund') continue;
    const isApproved = result?.approval?.approved === true;
    const begun = attempts.filter(({ step, tool_call_id: id }) => keyOf(step, id) === call).length;
    if (begun > (isApproved ? 1 : 0)) problems.push(`the refund ${call} began ${begun} times`);
    if (isApproved && !approvedIds.has(result.approval.id)) problems.push(`nobody said yes to ${call}`);
    if (isApproved) approvedCount += 1;
  }
  if (refunds.length > approvedCount)
    problems.push(`${refunds.length} refunds for ${approvedCount} that were approved`);
  return verdict(
    'no refund without a yes, and each at most once',
    problems,
    `${approvedCount} approved, ${refunds.length} given`,
  );
}

function noRecordedCallRunAgain({ attempts }, starts) {
  const problems = [];
  for (const { process, stored } of starts) {
    const known = stored === null ? new Map() : callsIn(stored);
    const begun = new Set();
    for (const { step, tool_call_id: id } of attempts.filter((attempt) => attempt.process === process)) {
      const call = keyOf(step, id);
      if (begun.has(call) || known.get(call)?.result !== undefined)
        problems.push(`process ${process} ran ${id} of step ${step} again`);
      begun.add(call);
    }
  }
  return verdict('no call that had its result was run again', problems);
}

function storedMessagesStayed({ messages }, starts) {
  const final = messages.map((message) => JSON.stringify(message));
  const problems = starts
    .filter(({ stored }) =>
      stored?.messages.some((message, index) => JSON.stringify(message) !== final[index]),
    )
    .map(({ process }) => `messages that process ${process} found are gone`);
  return verdict('what the store held after a kill is still there, unchanged', problems);
}
