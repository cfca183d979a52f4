// What the demo prints: at most 80 columns, times in front, colours only for a terminal that wants them.
const COLUMNS = 80;
const startedAtMs = performance.now();
const hasColours = process.stdout.isTTY === true && process.stdout.hasColors();

export const bold = paint(1, 22);
export const dim = paint(2, 22);
export const green = paint(32, 39);
export const red = paint(31, 39);
export const yellow = paint(33, 39);

export function heading(text) {
  console.log(`\n${bold(text)}`);
}

/** One thing that happened, with the milliseconds since the demo began. */
export function event(text, colour = (plain) => plain) {
  const elapsedMs = String(Math.round(performance.now() - startedAtMs)).padStart(6);
  console.log(`${dim(`${elapsedMs} ms`)}  ${colour(cut(text, COLUMNS - 11))}`);
}

/** A line of its own below an event. */
export function detail(text) {
  console.log(`${' '.repeat(11)}${dim(cut(text, COLUMNS - 11))}`);
}

export function plain(text = '') {
  console.log(text);
}

/** The verdict on one thing that was checked; a long one continues below itself. */
export function verdict(ok, text) {
  const [first, ...rest] = wrap(text, COLUMNS - 4);
  console.log(`  ${ok ? green('✓') : red('✗')} ${ok ? first : red(first)}`);
  for (const line of rest) console.log(`    ${ok ? line : red(line)}`);
}

/** On one line, shortened at the end when it is too long. */
export function cut(text, width) {
  const line = text.replaceAll('\n', ' ');
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
}

function wrap(text, width) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.length - 1;
    if (lines[last] !== '' && lines[last].length + 1 + word.length > width) lines.push(word);
    else lines[last] = lines[last] === '' ? word : `${lines[last]} ${word}`;
  }
  return lines;
}

function paint(on, off) {
  return (text) => (hasColours ? `\u001b[${on}m${text}\u001b[${off}m` : text);
}
