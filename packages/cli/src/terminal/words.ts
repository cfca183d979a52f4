/** Times, sizes and counts as people read them. The time now is given: tests move it by hand. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `850 ms`, `12 s`, `3 min`, `2 h 5 min`, `4 d 1 h`. */
export function duration(ms: number): string {
  if (!(ms >= 0)) return duration(-ms || 0);
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return pair(ms, HOUR_MS, 'h', MINUTE_MS, 'min');
  return pair(ms, DAY_MS, 'd', HOUR_MS, 'h');
}

/** `just now`, `3 min ago`, `in 20 s`; the text itself when it is no time. */
export function ago(time: string | number | undefined, nowMs: number): string {
  if (time === undefined) return 'unknown';
  const ms = typeof time === 'number' ? time : Date.parse(time);
  if (Number.isNaN(ms)) return String(time);
  const passedMs = nowMs - ms;
  if (Math.abs(passedMs) < SECOND_MS) return 'just now';
  return passedMs < 0 ? `in ${duration(-passedMs)}` : `${duration(passedMs)} ago`;
}

/** `512 B`, `3.4 kB`, `12 MB`. */
export function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  const shown = unit === 0 || value >= 10 ? Math.round(value) : value.toFixed(1);
  return `${shown} ${units[unit]}`;
}

/** `1 run`, `3 runs`, `1,204 runs`. */
export function count(amount: number, one: string, many = `${one}s`): string {
  return `${thousands(amount)} ${amount === 1 ? one : many}`;
}

/** `12,345`. */
export function thousands(amount: number): string {
  return amount.toLocaleString('en-US');
}

/** What `--older-than` takes, in milliseconds: `90s`, `15m`, `12h`, `30d`, `2w`. `undefined`: it is none. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d|w)$/.exec(text.trim());
  const unitMs = match?.[2] === undefined ? undefined : unitsMs[match[2]];
  return unitMs === undefined ? undefined : Number(match?.[1]) * unitMs;
}

const unitsMs: { readonly [unit: string]: number } = {
  ms: 1,
  s: SECOND_MS,
  m: MINUTE_MS,
  min: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
};

function pair(ms: number, bigMs: number, big: string, smallMs: number, small: string): string {
  const rest = Math.floor((ms % bigMs) / smallMs);
  const whole = `${Math.floor(ms / bigMs)} ${big}`;
  return rest === 0 ? whole : `${whole} ${rest} ${small}`;
}
