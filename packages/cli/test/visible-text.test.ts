import { expect, it } from 'vitest';
import { cutEnd, cutMiddle, visible, visibleJson, widthOf } from '../src/terminal/visible-text.ts';

const HOSTILE = 'a\u001b[2Jb\u009bc\u0007\r\nd\u202ee\u2066f\u200bg\u{e0041}h\ud800i\u2028j\u007f';
const RAW =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800]|\u{e0041}/u;

it('lets no control, no change of direction and nothing invisible through', () => {
  expect(visible(HOSTILE)).toBe(
    'a\\x1b[2Jb\\x9bc\\x07\\r\\nd\\u{202e}e\\u{2066}f\\u{200b}g\\u{e0041}h\\u{d800}i\\u{2028}j\\x7f',
  );
});

it('leaves what people write as it is', () => {
  for (const text of ['plain', 'é', '本屋さん', 'שלום', '👩\u200d💻', 'می\u200cخواهم'])
    expect(visible(text)).toBe(text);
});

it('prints JSON that is as safe, and reads back as the same', () => {
  for (const indent of [0, 2]) {
    const json = visibleJson({ [HOSTILE]: HOSTILE }, indent);
    expect(json).not.toMatch(RAW);
    expect(JSON.parse(json)).toEqual({ [HOSTILE]: HOSTILE });
  }
});

it.each([
  ['plain', 5],
  ['本屋', 4],
  ['e\u0301', 1],
  ['👩\u200d💻', 2],
  ['⚠\ufe0f', 2],
  ['한글', 4],
])('counts the cells of %s', (text, width) => {
  expect(widthOf(text)).toBe(width);
});

it('cuts between what is seen as one character, and never beyond the width', () => {
  expect(cutEnd('本屋さん', 8)).toBe('本屋さん');
  expect(cutEnd('本屋さん', 7)).toBe('本屋さ…');
  expect(cutEnd('本屋さん', 6)).toBe('本屋…');
  expect(cutMiddle('order-2026-11-30', 9)).toBe('orde…1-30');
  expect(widthOf(cutMiddle('本屋さん本屋さん', 8))).toBeLessThanOrEqual(8);
  expect(cutEnd('abc', 0)).toBe('');
});
