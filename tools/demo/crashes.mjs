// The long demo: many orders in one run, whose process is killed again and again at moments that a seed chooses.
import { STEPS_PER_ORDER } from './order-agent.mjs';
import { runWorker } from './processes.mjs';
import * as screen from './screen.mjs';
import { readRun, summarizeRun } from './stored-run.mjs';

const FIRST_ORDER = 1001;
const PACE = { modelMs: 25, chargeMs: 15, shipMs: 40, emailMs: 10, refundMs: 20 };

export async function surviveCrashes({ folder, crashCount, seed }) {
  const random = randomFrom(seed);
  const moments = chooseMoments(crashCount, random);
  // Each order offers every kind of moment, so this many orders have room for all kills.
  const orders = Array.from({ length: crashCount + 2 }, (_, index) => FIRST_ORDER + index);
  const decisions = new Map(orders.map((order) => [order, random() < 0.8]));
  const starts = [];

  screen.heading(`${crashCount} kills at random moments, ${orders.length} orders in one run, seed ${seed}`);
  screen.plain(screen.dim(row('', 'killed after the start of', 'the store then held', 'resumed')));
  let task = { type: 'continue' };
  let kills = 0;
  let lastKill;
  for (;;) {
    const number = starts.length + 1;
    const stored = await readRun(folder);
    starts.push({ process: number, stored });
    if (lastKill !== undefined) lastKill.held = summarizeRun(stored);
    const startedAtMs = performance.now();
    let step = stored?.stepIndex ?? 0;
    const onMessage = (message) => {
      if (message.type === 'run.start') lastKill = reportKill(lastKill, performance.now() - startedAtMs);
      step = message.step ?? step;
    };
    const moment = moments[kills];
    // One order after the other has its kill, so that they are spread over the whole run.
    const isDue = (message) => step >= kills * STEPS_PER_ORDER && moment.isReached(message);
    const ended = await runWorker(
      { folder, number, orders, pace: PACE, task },
      { onMessage, killAt: moment && { isReached: isDue, delayMs: moment.delayMs } },
    );
    if (ended.type === 'killed') {
      reportKill(lastKill);
      lastKill = { number: kills + 1, moment: moment.name };
      kills += 1;
      task = { type: 'continue' };
    } else if (ended.finishReason === 'awaiting-approval') {
      const [{ id, args }] = ended.approvals;
      task = { type: 'decide', id, approved: decisions.get(args.order) };
    } else break;
  }
  if (kills < crashCount) throw new Error(`The run ended after ${kills} of ${crashCount} kills.`);
  screen.plain(`\n${starts.length} processes took part; the last one finished the run.`);
  return { orders, starts, isApproved: (order) => decisions.get(order) };
}

/** One line a kill, as soon as the next process has the run again. Gives back what is left to report: nothing. */
function reportKill(kill, backInMs) {
  if (kill === undefined) return;
  const backIn = backInMs === undefined ? 'killed again' : `in ${Math.round(backInMs)} ms`;
  screen.plain(row(String(kill.number), kill.moment, kill.held, backIn));
}

function row(number, moment, held, backIn) {
  return `${number.padStart(4)}  ${moment.padEnd(27)}${screen.cut(held, 34).padEnd(35)}${backIn.padStart(12)}`;
}

/* ── Moments ── */

/** What a kill can wait for. Each order of a run passes all of them. */
const kinds = [
  { name: 'model', longestMs: PACE.modelMs + 5, choices: 3, fits: ({ type }) => type === 'model.asked' },
  { name: 'charge_card', longestMs: PACE.chargeMs + 5, fits: toolBegan('charge_card') },
  { name: 'ship_order', longestMs: PACE.shipMs + 5, fits: toolBegan('ship_order') },
  { name: 'send_email', longestMs: PACE.emailMs + 5, fits: toolBegan('send_email') },
  { name: 'approved refund', longestMs: PACE.refundMs + 5, fits: toolBegan('refund') },
  { name: 'save', longestMs: 3, choices: 6, fits: ({ type }) => type === 'checkpoint.saved' },
  { name: 'pause', longestMs: 10, fits: ({ type }) => type === 'approval.requested' },
  { name: 'decision', longestMs: 15, fits: ({ type }) => type === 'deciding' },
];

function toolBegan(name) {
  return ({ type, toolName }) => type === 'tool.began' && toolName === name;
}

/** Kinds are dealt like cards, so that a short run meets many of them and a long one all. */
function chooseMoments(count, random) {
  const moments = [];
  while (moments.length < count)
    moments.push(...shuffled(kinds, random).map((kind) => chooseMoment(kind, random)));
  return moments.slice(0, count);
}

function chooseMoment({ name, longestMs, choices = 1, fits }, random) {
  let left = Math.floor(random() * choices);
  const delayMs = Math.floor(random() * (longestMs + 1));
  return { name: `${name} + ${delayMs} ms`, delayMs, isReached: (message) => fits(message) && left-- === 0 };
}

function shuffled(items, random) {
  const left = [...items];
  return items.map(() => left.splice(Math.floor(random() * left.length), 1)[0]);
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32, public domain). */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
