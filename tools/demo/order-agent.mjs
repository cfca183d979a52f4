// The agent of the demo: four tools that have effects in the ledger, and a model that answers from a script.
import { createAgent, defineTool, textOf } from '@lousho/core';
import { mockModel } from '@lousho/testing';
import { z } from 'zod';

export const SESSION_ID = 'orders-of-today';
/** Model responses that the script has for each order. */
export const STEPS_PER_ORDER = 3;
/** A model does one thing after the other, or something else altogether. */
const LIVE_STEPS = 20;
const CHARGE_CENTS = 7_900;
const REFUND_CENTS = 1_200;

/**
 * `tell` reports to the parent process; `pace` says how long model and tools take, in milliseconds:
 * `{ modelMs, chargeMs, shipMs, emailMs, refundMs }`; `liveModel` answers in the place of the script.
 */
export function createOrderAgent({ store, ledger, orders, pace, processNumber, tell, liveModel }) {
  const world = { ledger, pace, processNumber, tell };
  return createAgent({
    name: 'order-desk',
    instructions: 'You handle orders: charge, ship, tell the customer, refund what is missing.',
    provider: countedModel(liveModel ?? mockModel(scriptFor(orders, pace), { answerBy: 'step' }), world),
    tools: [chargeCard(world), shipOrder(world), sendEmail(world), refund(world)],
    store,
    maxSteps: liveModel === undefined ? orders.length * STEPS_PER_ORDER + 1 : LIVE_STEPS,
    onEvent: ({ type, ...details }) => tell({ type, ...details }),
  });
}

export function inputFor(orders) {
  return `Handle ${orders.length === 1 ? `order ${orders[0]}` : `the orders ${orders[0]} to ${orders.at(-1)}`}.`;
}

/** What a script need not be told. */
export function liveInputFor([order]) {
  return `Handle order ${order}: charge ${CHARGE_CENTS} cents, ship it and write to the customer. Then ask for a refund of ${REFUND_CENTS} cents for each thing that shipping says is missing. Use the tools.`;
}

/* ── Tools ── */

const order = z.number().int();

function chargeCard(world) {
  return defineTool({
    name: 'charge_card',
    description: 'Charges the card of the customer.',
    input: z.object({ order, cents: z.number().int() }),
    async execute({ order, cents }, ctx) {
      begin(world, ctx, order);
      await pause(world.pace.chargeMs, ctx.signal);
      const isFirst = world.ledger.charge({
        idempotency_key: ctx.idempotencyKey,
        order_number: order,
        cents,
      });
      return { receipt: `r-${order}`, cents, ...(isFirst ? undefined : { alreadyCharged: true }) };
    },
  });
}

function shipOrder(world) {
  return defineTool({
    name: 'ship_order',
    description: 'Books the parcel. Slow. Says what was out of stock.',
    input: z.object({ order }),
    async execute({ order }, ctx) {
      begin(world, ctx, order);
      await pause(world.pace.shipMs, ctx.signal);
      world.ledger.ship({ idempotency_key: ctx.idempotencyKey, order_number: order });
      return { tracking: `t-${order}`, missing: ['one cup'] };
    },
  });
}

function sendEmail(world) {
  return defineTool({
    name: 'send_email',
    description: 'Writes to the customer.',
    input: z.object({ order, text: z.string() }),
    async execute({ order, text }, ctx) {
      begin(world, ctx, order);
      await pause(world.pace.emailMs, ctx.signal);
      world.ledger.email(order, ctx.idempotencyKey, text);
      return { sent: true };
    },
  });
}

/** A person decides first, and the call then runs at most once: no key is needed to keep it from happening twice. */
function refund(world) {
  return defineTool({
    name: 'refund',
    description: 'Gives money back.',
    input: z.object({ order, cents: z.number().int(), reason: z.string() }),
    needsApproval: true,
    async execute({ order, cents }, ctx) {
      begin(world, ctx, order);
      await pause(world.pace.refundMs, ctx.signal);
      world.ledger.refund({ order_number: order, cents });
      return { refunded: cents };
    },
  });
}

/** On record before the parent can hear of it: a kill that follows at once finds the attempt in the log. */
function begin(
  { ledger, processNumber, tell },
  { toolName, toolCallId, idempotencyKey, rerun, step },
  order,
) {
  ledger.logAttempt({
    process: processNumber,
    tool: toolName,
    order_number: order,
    tool_call_id: toolCallId,
    idempotency_key: idempotencyKey,
    step,
  });
  tell({ type: 'tool.began', toolName, order, rerun });
}

function pause(delayMs, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, delayMs);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/* ── Model ── */

/** Three responses for each order and one at the end. The e-mail is written while the slow parcel is booked. */
function scriptFor(orders, { modelMs: delayMs }) {
  const steps = orders.flatMap((order) => [
    { delayMs, toolCalls: [{ name: 'charge_card', args: { order, cents: CHARGE_CENTS } }] },
    {
      delayMs,
      toolCalls: [
        { name: 'ship_order', args: { order } },
        { name: 'send_email', args: { order, text: `Your order ${order} is on its way.` } },
      ],
    },
    {
      delayMs,
      toolCalls: [{ name: 'refund', args: { order, cents: REFUND_CENTS, reason: 'one cup out of stock' } }],
    },
  ]);
  return [...steps, ({ messages }) => ({ delayMs, text: summary(messages) })];
}

function summary(messages) {
  const refunds = messages
    .filter(({ role }) => role === 'tool')
    .map(({ content: [result] }) => result)
    .filter(({ toolName }) => toolName === 'refund');
  const given = refunds.filter(({ isError }) => isError !== true).length;
  const asked = textOf(messages.find(({ role }) => role === 'user'));
  return `Done: "${asked}" ${given} of ${refunds.length} refunds given.`;
}

/** Logs each answer before it is given. The number of a step is one more than the responses in the transcript. */
function countedModel(model, { ledger, processNumber, tell }) {
  return {
    providerId: model.providerId,
    modelId: model.modelId,
    async generate(request) {
      const step = 1 + request.messages.filter(({ role }) => role === 'assistant').length;
      tell({ type: 'model.asked', step });
      const response = await model.generate(request);
      ledger.logModelAnswer({ process: processNumber, step });
      tell({ type: 'model.answered', step, calls: callsOf(response) });
      return response;
    },
  };
}

function callsOf({ message }) {
  return message.content.filter(({ type }) => type === 'tool-call').map(({ toolName }) => toolName);
}
