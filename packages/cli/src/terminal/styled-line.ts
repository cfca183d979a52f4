/** Lines as commands make them: text with the meaning of its colour. Only here text becomes what a terminal gets, so nothing passes unseen. */
import pc from 'picocolors';
import { cutEnd, visible, widthOf } from './visible-text.ts';

type Style = 'strong' | 'dim' | 'good' | 'warn' | 'bad' | 'accent' | 'whole';
/** A piece of a line. A plain string has no colour. */
export type Piece = string | { readonly text: string; readonly style: Style };
export type Line = Piece | readonly Piece[];

export const strong = (text: string): Piece => ({ text, style: 'strong' });
export const dim = (text: string): Piece => ({ text, style: 'dim' });
export const good = (text: string): Piece => ({ text, style: 'good' });
export const warn = (text: string): Piece => ({ text, style: 'warn' });
export const bad = (text: string): Piece => ({ text, style: 'bad' });
export const accent = (text: string): Piece => ({ text, style: 'accent' });

/** Something to copy: never cut, so a terminal goes on in the next line. */
export const whole = (text: string): Piece => ({ text, style: 'whole' });

export interface RenderOptions {
  readonly colors: boolean;
  /** Cells; what is beyond is cut. `Infinity` cuts nothing. */
  readonly width: number;
}

/** The line as it is written, without its end. */
export function renderLine(line: Line, { colors, width }: RenderOptions): string {
  const paint = colors ? withColors : withoutColors;
  let rendered = '';
  let left = width;
  for (const piece of piecesOf(line)) {
    const style = typeof piece === 'string' ? undefined : piece.style;
    const shown = visible(textOfPiece(piece));
    const text = style === 'whole' ? shown : cutEnd(shown, left);
    left = Math.max(left - widthOf(text), 0);
    rendered += style === undefined ? text : paint[style](text);
  }
  return rendered;
}

export function piecesOf(line: Line): readonly Piece[] {
  return isPiece(line) ? [line] : line;
}

/** Cells that the line takes when it is not cut. */
export function widthOfLine(line: Line): number {
  return piecesOf(line).reduce((sum, piece) => sum + widthOf(visible(textOfPiece(piece))), 0);
}

export function textOfPiece(piece: Piece): string {
  return typeof piece === 'string' ? piece : piece.text;
}

function isPiece(line: Line): line is Piece {
  return !Array.isArray(line);
}

const withColors = paints(pc.createColors(true));
const withoutColors = paints(pc.createColors(false));

function paints(colors: ReturnType<typeof pc.createColors>): {
  readonly [S in Style]: (text: string) => string;
} {
  return {
    strong: colors.bold,
    dim: colors.dim,
    good: colors.green,
    warn: colors.yellow,
    bad: colors.red,
    accent: colors.cyan,
    whole: String,
  };
}
