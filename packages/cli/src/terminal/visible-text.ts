/** Text from a store as a terminal may show it: nothing in it moves the cursor, changes colours or turns the direction of writing. */

/** Controls, separators of lines, lone surrogates, and format characters but the two joiners that scripts and emoji need. */
const INVISIBLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]|(?![\u200c\u200d])\p{Cf}/gu;
const SHORT_ESCAPES: { readonly [character: string]: string } = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const PRINTABLE_ASCII = /^[ -~]*$/;

/** The text with everything invisible written out, as `\n` or `\u{202e}`. */
export function visible(text: string): string {
  if (PRINTABLE_ASCII.test(text)) return text;
  return text.replace(INVISIBLE, (found) => SHORT_ESCAPES[found] ?? escaped(found));
}

/** JSON that is as safe to print, and still JSON. `indent` 0 gives one line. */
export function visibleJson(value: unknown, indent = 0): string {
  const json = JSON.stringify(value, undefined, indent) ?? 'null';
  if (PRINTABLE_ASCII.test(json)) return json;
  return json.replace(INVISIBLE, (found) => (found === '\n' ? found : jsonEscape(found)));
}

/** Cells of a terminal that the text takes; what it holds must be visible already. */
export function widthOf(text: string): number {
  if (PRINTABLE_ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += widthOfGrapheme(segment);
  return width;
}

/** At most `width` cells; what is left out is marked by an ellipsis. */
export function cutEnd(text: string, width: number): string {
  if (fits(text, width)) return text;
  return width < 1 ? '' : `${startOf(text, width - 1)}…`;
}

/** The same with the ellipsis in the middle: of an id, both ends tell something. */
export function cutMiddle(text: string, width: number): string {
  if (fits(text, width)) return text;
  if (width < 3) return cutEnd(text, width);
  const head = startOf(text, Math.ceil((width - 1) / 2));
  return `${head}…${endOf(text, width - 1 - widthOf(head))}`;
}

/** The text in lines of at most `width` cells. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let rest = text;
  while (!fits(rest, width)) {
    const line = startOf(rest, Math.max(width, 2));
    lines.push(line);
    rest = rest.slice(line.length);
  }
  return [...lines, rest];
}

/** Looks at no more of a long text than it has to. */
function fits(text: string, width: number): boolean {
  return width === Infinity || startOf(text, width).length === text.length;
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
const NO_WIDTH = /^[\p{M}\u200c\u200d]+$/u;
/** East Asian wide and full-width blocks, and what is shown as a picture. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;

function widthOfGrapheme(grapheme: string): number {
  if (NO_WIDTH.test(grapheme)) return 0;
  return WIDE.test(grapheme) ? 2 : 1;
}

function startOf(text: string, width: number): string {
  const head = text.slice(0, Math.max(width, 0));
  // As many characters as cells, if all are plain.
  if (PRINTABLE_ASCII.test(text.slice(0, Math.max(width, 0) + 1))) return head;
  let start = '';
  let left = width;
  for (const { segment } of graphemes.segment(text)) {
    left -= widthOfGrapheme(segment);
    if (left < 0) break;
    start += segment;
  }
  return start;
}

function endOf(text: string, width: number): string {
  const segments = [...graphemes.segment(text)].map(({ segment }) => segment);
  let end = '';
  let left = width;
  for (const segment of segments.reverse()) {
    left -= widthOfGrapheme(segment);
    if (left < 0) break;
    end = segment + end;
  }
  return end;
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
}

function jsonEscape(character: string): string {
  let escapes = '';
  for (let index = 0; index < character.length; index += 1)
    escapes += `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`;
  return escapes;
}
