/** Rows in columns, as wide as the terminal. Elsewhere nothing is cut: programs read whole cells. */
import { dim, piecesOf, textOfPiece, widthOfLine, type Line, type Piece } from './styled-line.ts';
import { cutEnd, cutMiddle, visible, widthOf } from './visible-text.ts';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => Piece;
  readonly align?: 'right' | undefined;
  /** How narrow the terminal may make it. Absent: an id, which is the last to be cut, and in its middle. */
  readonly minWidth?: number | undefined;
}

const GAP = 2;

/** The head and one line a row. `width` is that of the terminal, in cells. */
export function* tableLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
): Iterable<Line> {
  const cells = rows.map((row) => columns.map((column) => column.cell(row)));
  const widths = columns.map((column, index) =>
    cells.reduce((widest, row) => Math.max(widest, widthOfLine(row[index] ?? '')), column.title.length),
  );
  fit(columns, widths, width);
  yield columns.flatMap((column, index) => padded(dim(column.title), column, widths, index));
  for (const row of cells)
    yield columns.flatMap((column, index) => padded(row[index] ?? '', column, widths, index));
}

/** Makes columns narrower, the last ones first, until the table fits or nothing more can be cut. */
function fit<Row>(columns: readonly Column<Row>[], widths: number[], width: number): void {
  let over = widths.reduce((sum, each) => sum + each + GAP, -GAP) - width;
  const shrink = (index: number, least: number): void => {
    const now = widths[index] ?? 0;
    const cut = Math.min(Math.max(over, 0), Math.max(now - least, 0));
    widths[index] = now - cut;
    over -= cut;
  };
  for (let index = columns.length - 1; index >= 0; index -= 1) {
    const minWidth = columns[index]?.minWidth;
    if (minWidth !== undefined) shrink(index, minWidth);
  }
  columns.forEach((column, index) => {
    if (column.minWidth === undefined) shrink(index, SHORTEST_ID);
  });
}

/** Enough to tell ids apart by their ends. */
const SHORTEST_ID = 12;

function padded<Row>(
  cell: Piece,
  column: Column<Row>,
  widths: readonly number[],
  index: number,
): readonly Piece[] {
  const isLast = index === widths.length - 1;
  const width = widths[index] ?? 0;
  const [piece = ''] = piecesOf(cell);
  const whole = visible(textOfPiece(piece));
  const text = column.minWidth === undefined ? cutMiddle(whole, width) : cutEnd(whole, width);
  const blank = ' '.repeat(Math.max(width - widthOf(text), 0));
  const shown = typeof piece === 'string' ? text : { ...piece, text };
  const gap = ' '.repeat(GAP);
  if (column.align === 'right') return isLast ? [blank, shown] : [blank, shown, gap];
  return isLast ? [shown] : [shown, blank + gap];
}
