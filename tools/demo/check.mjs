// What must be true at the end, whatever was killed and when. Knows nothing but the store, the ledger, what the person decided, and
// what the store held each time a process started.
import { recordedResults } from './stored-run.mjs';

/**
 * `starts`: for each process `{ process, stored }`, the run as the store held it when the process started.
 * `isApproved(order)`: what the person decided about the refund of an order.
 * Gives one `{ ok, text }` for each thing that was checked.
 */
export function checkOutcome({ checkpoint, ledger, orders, starts, isApproved }) {
  if (checkpoint === null) return [verdict('the store holds the run', ['it holds none'])];
  return [
    runIsFinished(checkpoint),
    callsHaveOneResult(checkpoint),
    happenedOnce('charged', 'charge_card', ledger.charges, ledger, orders),
    happenedOnce('shipped', 'ship_order', ledger.shipments, ledger, orders),
    happenedOnce('e-mailed', 'send_email', ledger.emails, ledger, orders),
    refundedAsDecided(checkpoint, ledger, orders, isApproved),
    noStoredResponseAskedAgain(checkpoint, ledger, starts),
    noRecordedResultRunAgain(ledger, starts),
    nothingBeganTooEarly(checkpoint, ledger, starts),
    storedStateOnlyGrew(checkpoint, starts),
  ];
}

export function verdict(rule, problems, note = '') {
  if (problems.length === 0) return { ok: true, text: `${rule}${note === '' ? '' : `: ${note}`}` };
  const more = problems.length > 3 ? `; and ${problems.length - 3} more` : '';
  return { ok: false, text: `${problems.slice(0, 3).join('; ')}${more} (rule: ${rule})` };
}

function runIsFinished({ status, finishReason, stepIndex }) {
  const isFinished = status === 'finished' && finishReason === 'stop';
  return verdict(
    'the run is finished',
    isFinished ? [] : [`the run is ${status}`],
    `${stepIndex} model responses`,
  );
}

/** Behind each response the results of its calls, in call order, and nothing else before the next response. */
export function callsHaveOneResult({ messages, settledResults }) {
  const problems = [];
  let callCount = 0;
  let due = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      const expected = due.shift() ?? 'no result';
      const { toolCallId } = message.content[0];
      if (toolCallId !== expected) problems.push(`${toolCallId} stands where ${expected} belongs`);
      continue;
    }
    problems.push(...due.map((id) => `${id} has no result`));
    due = message.role === 'assistant' ? callIdsOf(message) : [];
    callCount += due.length;
  }
  problems.push(...due.map((id) => `${id} has no result`));
  problems.push(...settledResults.map(({ toolCallId }) => `the result of ${toolCallId} is not in its place`));
  return verdict('each call has exactly one result, in call order', problems, `${callCount} calls`);
}

function callIdsOf({ content }) {
  return content.filter(({ type }) => type === 'tool-call').map(({ toolCallId }) => toolCallId);
}

/** One effect for each order; the tool may have begun more often, but then with the same idempotency key. */
function happenedOnce(what, tool, effects, ledger, orders) {
  const attempts = ledger.attempts.filter((attempt) => attempt.tool === tool);
  const problems = orders.flatMap((order) => {
    const count = ofOrder(effects, order).length;
    const keys = new Set(ofOrder(attempts, order).map((attempt) => attempt.idempotency_key)).size;
    return [
      ...(count === 1 ? [] : [`order ${order} was ${what} ${count} times`]),
      ...(keys === 1 ? [] : [`${tool} of order ${order} had ${keys} idempotency keys`]),
    ];
  });
  const keys = new Set(attempts.map((attempt) => attempt.idempotency_key)).size;
  return verdict(
    `each order was ${what} once`,
    problems,
    `${plural(attempts.length, 'attempt')}, ${plural(keys, 'idempotency key')}`,
  );
}

/** A call that a person approved runs at most once: when its process died in it, it may or may not have happened. */
function refundedAsDecided(checkpoint, { refunds, attempts }, orders, isApproved) {
  const problems = [];
  const counts = { given: 0, refused: 0, interrupted: 0 };
  const outcomes = refundOutcomes(checkpoint);
  for (const order of orders) {
    const outcome = outcomes.get(order);
    const happened = ofOrder(refunds, order).length;
    const begun = ofOrder(attempts, order).filter(({ tool }) => tool === 'refund').length;
    const allowed = isApproved(order) ? ['given', 'interrupted'] : ['refused'];
    const most = outcome === 'refused' ? 0 : 1;
    if (!allowed.includes(outcome)) problems.push(`the refund of order ${order} ended as ${outcome}`);
    if (begun > most) problems.push(`the refund of order ${order} began ${begun} times`);
    if (happened > most || (outcome === 'given' && happened < 1))
      problems.push(`order ${order} was refunded ${happened} times`);
    counts[outcome] += 1;
  }
  const { given, refused, interrupted } = counts;
  const parts = [`${given} given`, `${refused} refused`];
  if (interrupted > 0) parts.push(`${interrupted} cut off and not tried again`);
  return verdict('each refund was decided, and happened at most once', problems, parts.join(', '));
}

function refundOutcomes({ messages }) {
  const orderOfCall = new Map();
  const outcomes = new Map();
  for (const { role, content } of messages) {
    if (role === 'assistant')
      for (const { toolName, toolCallId, args } of content)
        if (toolName === 'refund') orderOfCall.set(toolCallId, args.order);
    if (role === 'tool' && content[0].toolName === 'refund')
      outcomes.set(orderOfCall.get(content[0].toolCallId), refundOutcome(content[0]));
  }
  return outcomes;
}

function refundOutcome({ kind }) {
  if (kind === undefined) return 'given';
  return kind === 'rejected' ? 'refused' : kind;
}

/** A response that died with its process before it was stored is asked for again; one that was stored never is. */
export function noStoredResponseAskedAgain({ stepIndex }, { modelAnswers }, starts) {
  const problems = [];
  for (const { process, stored } of starts) {
    let last = stored?.stepIndex ?? 0;
    for (const { step } of modelAnswers.filter((answer) => answer.process === process)) {
      if (step <= last) problems.push(`process ${process} asked again for response ${step}`);
      last = Math.max(last, step);
    }
  }
  const lost = modelAnswers.length - stepIndex;
  if (lost < 0) problems.push(`${modelAnswers.length} answers cannot be ${stepIndex} responses`);
  return verdict(
    'no stored model response was asked for again',
    problems,
    `${plural(modelAnswers.length, 'answer')} for ${stepIndex} responses${lost > 0 ? `, ${lost} died unstored` : ''}`,
  );
}

function noRecordedResultRunAgain({ attempts }, starts) {
  const problems = [];
  for (const { process, stored } of starts) {
    const done = new Set(stored === null ? [] : recordedResults(stored).keys());
    for (const { tool_call_id: id } of attempts.filter((attempt) => attempt.process === process)) {
      if (done.has(id)) problems.push(`process ${process} ran ${id} again`);
      done.add(id);
    }
  }
  return verdict('no call that had its result was run again', problems);
}

/** What a process left behind shows the order of things: a tool that began had its call stored, a model that was asked had everything. */
function nothingBeganTooEarly(checkpoint, { attempts, modelAnswers }, starts) {
  const problems = [];
  starts.forEach(({ process }, index) => {
    const left = index + 1 < starts.length ? starts[index + 1].stored : checkpoint;
    const calls = new Set(
      (left?.messages ?? []).filter(({ role }) => role === 'assistant').flatMap(callIdsOf),
    );
    for (const { process: by, tool_call_id: id } of attempts)
      if (by === process && !calls.has(id))
        problems.push(`process ${process} ran ${id} before it was stored`);
    for (const { process: by, step } of modelAnswers)
      if (by === process && step > (left?.stepIndex ?? 0) + 1)
        problems.push(`process ${process} asked for response ${step} before response ${step - 1} was stored`);
  });
  return verdict('every response was stored before anything followed from it', problems);
}

function storedStateOnlyGrew(checkpoint, starts) {
  const final = checkpoint.messages.map((message) => JSON.stringify(message));
  const results = recordedResults(checkpoint);
  const problems = [];
  for (const { process, stored } of starts) {
    if (stored === null) continue;
    if (stored.messages.some((message, index) => JSON.stringify(message) !== final[index]))
      problems.push(`messages that process ${process} found are gone`);
    for (const [id, result] of recordedResults(stored))
      if (JSON.stringify(results.get(id)) !== JSON.stringify(result))
        problems.push(`the result of ${id} that process ${process} found is another one now`);
  }
  return verdict('what the store held after a kill is still there, unchanged', problems);
}

function ofOrder(rows, order) {
  return rows.filter((row) => row.order_number === order);
}

function plural(count, what) {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
