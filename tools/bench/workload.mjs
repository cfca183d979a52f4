/**
 * The one job that every contestant does, deterministic to the byte.
 *
 * Turn i (from 0): the model says 200 B of text and asks for `parallel` calls of the tool `lookup`; each result is 1 KB
 * of text. After `turns` turns it says a last text that begins with `DONE`. A turn with one call is about 1.4 KB of new
 * information as minimal JSON.
 */

export const PROMPT = 'Work through every record of the ledger and report at the end.';
export const TOOL_NAME = 'lookup';
export const TOOL_DESCRIPTION = 'Looks up one record';

const MESSAGE_BYTES = 200;
const RESULT_BYTES = 1024;
const WORDS =
  'invoice customer order shipment refund account region status ledger total amount address contact summary window report'.split(
    ' ',
  );

/**
 * What one run is about.
 * @typedef {object} Task
 * @property {number} turns
 * @property {number} [parallel] calls a turn, 1 by default
 * @property {() => void} [onModelCall] called before each answer of the model
 * @property {number} [silentAt] the turn in which the model never answers: the process then dies in the call
 * @property {() => void} [onSilent] called when that moment is there
 */

/**
 * The scripted model: what it answers to a transcript whose last tool result, if any, belongs to this call. It looks at nothing
 * else, so that what a run costs is the cost of the loop around it. No calls: the last answer.
 * @param {Task} task
 * @param {string | undefined} lastCallId
 * @returns {{ text: string, calls: { id: string, args: { record: number } }[] } | Promise<never>}
 */
export function answer(task, lastCallId) {
  task.onModelCall?.();
  const turn = lastCallId === undefined ? 0 : Number(lastCallId.split('_')[1]) + 1;
  if (turn === task.silentAt) {
    task.onSilent?.();
    return new Promise(() => {});
  }
  if (turn >= task.turns) return { text: `DONE ${textOf(2 * turn + 1, MESSAGE_BYTES - 5)}`, calls: [] };
  const calls = Array.from({ length: task.parallel ?? 1 }, (_, index) => ({
    id: `call_${turn}_${index}`,
    args: { record: turn * 100 + index },
  }));
  return { text: textOf(2 * turn + 1, MESSAGE_BYTES), calls };
}

/** What the tool returns. */
export function lookup({ record }) {
  return textOf(2 * record + 2, RESULT_BYTES);
}

/** A run that ended in any other way has measured something else. */
export function requireDone(text) {
  if (!text.startsWith('DONE')) throw new Error(`The run ended early: ${text.slice(0, 80)}`);
}

/** Words and numbers that look like data and that no two seeds share. */
function textOf(seed, bytes) {
  let state = Math.imul(seed, 2_654_435_761) >>> 0;
  const next = (below) => {
    // Numerical Recipes' linear congruential generator; its high bits are the random ones.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  let text = '';
  while (text.length < bytes) text += `${WORDS[next(WORDS.length)]} ${next(100_000).toString(36)} `;
  return text.slice(0, bytes);
}
