import { expect, it } from 'vitest';
import { bad, renderLine } from '../src/terminal/styled-line.ts';
import { tableLines, type Column } from '../src/terminal/table.ts';
import { widthOf } from '../src/terminal/visible-text.ts';

interface Row {
  readonly id: string;
  readonly steps: number;
  readonly why: string;
}
const columns: readonly Column<Row>[] = [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'STEPS', cell: ({ steps }) => String(steps), align: 'right', minWidth: 5 },
  { title: 'WHY', cell: ({ why }) => bad(why), minWidth: 6 },
];
const rows: readonly Row[] = [
  { id: 'order-7', steps: 3, why: 'the carrier is down' },
  { id: '本屋', steps: 12, why: 'a\u001b[31mb' },
];

const linesAt = (width: number, colors = false) =>
  [...tableLines(columns, rows, width)].map((line) => renderLine(line, { colors, width }));

it('aligns columns by what is seen', () => {
  expect(linesAt(Infinity)).toEqual([
    'ID       STEPS  WHY',
    'order-7      3  the carrier is down',
    '本屋        12  a\\x1b[31mb',
  ]);
});

it('cuts the last columns first, and no line is wider than the terminal', () => {
  expect(linesAt(24)).toEqual([
    'ID       STEPS  WHY',
    'order-7      3  the car…',
    '本屋        12  a\\x1b[3…',
  ]);
  for (let width = 1; width < 40; width += 1)
    for (const line of linesAt(width)) expect(widthOf(line)).toBeLessThanOrEqual(width);
});

it('colours what is shown, and escapes before it does', () => {
  expect(linesAt(Infinity, true)[2]).toBe('本屋        12  \u001b[31ma\\x1b[31mb\u001b[39m');
});
