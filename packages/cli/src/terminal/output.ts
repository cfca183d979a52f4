/** Where a command writes: data to stdout, everything else to stderr. */
import type { Writable } from 'node:stream';
import { renderLine, type Line, type RenderOptions } from './styled-line.ts';
import { tableLines, type Column } from './table.ts';
import { visibleJson } from './visible-text.ts';

/** The reader of stdout went away (`| head`): nobody is left to tell, so the command just ends. */
export class OutputClosed extends Error {
  constructor() {
    super('stdout was closed');
    this.name = 'OutputClosed';
  }
}

export interface OutputOptions {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly stdout: TextStream;
  readonly stderr: TextStream;
}
export interface TextStream {
  readonly stream: Writable;
  readonly isTerminal: boolean;
  readonly colors: boolean;
  /** Cells of a line now; `Infinity` where it is no terminal. */
  columns(): number;
}

export class Output {
  /** Whether data is asked for as JSON. */
  readonly json: boolean;
  readonly #quiet: boolean;
  readonly #stdout: TextStream;
  readonly #stderr: TextStream;
  #closed = false;

  constructor({ json, quiet, stdout, stderr }: OutputOptions) {
    this.json = json;
    this.#quiet = quiet;
    this.#stdout = stdout;
    this.#stderr = stderr;
    stdout.stream.on('error', () => (this.#closed = true));
    // Notes are not worth a failure.
    stderr.stream.on('error', () => undefined);
  }

  get columns(): number {
    return this.#stdout.columns();
  }

  get isTerminal(): boolean {
    return this.#stdout.isTerminal;
  }

  /** Lines of data for people, cut to the terminal. @throws OutputClosed */
  async lines(lines: Iterable<Line>): Promise<void> {
    const options = renderOptions(this.#stdout);
    let batch = '';
    for (const line of lines) {
      batch += `${renderLine(line, options)}\n`;
      if (batch.length < BATCH_LENGTH) continue;
      await this.#write(batch);
      batch = '';
    }
    if (batch !== '') await this.#write(batch);
  }

  /** @throws OutputClosed */
  async table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): Promise<void> {
    await this.lines(tableLines(columns, rows, this.columns));
  }

  /** The one JSON document of a command. @throws OutputClosed */
  async document(value: unknown): Promise<void> {
    await this.#write(`${visibleJson(value, 2)}\n`);
  }

  /** One document that is an array, element by element. @throws OutputClosed */
  async documentOf(elements: Iterable<unknown>): Promise<void> {
    let batch = '[';
    let isFirst = true;
    for (const element of elements) {
      batch += `${isFirst ? '\n' : ',\n'}  ${visibleJson(element)}`;
      isFirst = false;
      if (batch.length < BATCH_LENGTH) continue;
      await this.#write(batch);
      batch = '';
    }
    await this.#write(isFirst ? '[]\n' : `${batch}\n]\n`);
  }

  /** One line of a stream of JSON documents. @throws OutputClosed */
  async event(value: unknown): Promise<void> {
    await this.#write(`${visibleJson(value)}\n`);
  }

  /** Data as it is, for files that are piped away (`export`). @throws OutputClosed */
  async raw(text: string): Promise<void> {
    await this.#write(text);
  }

  /** What a person may want to know and a program does not: on stderr, not with `--quiet`. */
  note(line: Line): void {
    if (!this.#quiet) this.#writeNote(line);
  }

  /** On stderr, also with `--quiet`. */
  warning(line: Line): void {
    this.#writeNote(line);
  }

  /** How far it is: one line that replaces itself on a terminal; elsewhere nothing. `undefined` wipes it. */
  progress(line: Line | undefined): void {
    if (this.#quiet || !this.#stderr.isTerminal) return;
    const text = line === undefined ? '' : renderLine(line, renderOptions(this.#stderr));
    this.#stderr.stream.write(`\r\u001b[K${text}`);
  }

  #writeNote(line: Line): void {
    // Whole on every terminal: sentences wrap, they are not cut.
    const text = renderLine(line, { ...renderOptions(this.#stderr), width: Infinity });
    this.#stderr.stream.write(`${text}\n`);
  }

  /** Waits for the reader: a list of any length takes no more memory than it does. */
  async #write(text: string): Promise<void> {
    if (this.#closed) throw new OutputClosed();
    await new Promise<void>((resolve, reject) => {
      this.#stdout.stream.write(text, (error) => {
        if (error === null || error === undefined) resolve();
        else reject(new OutputClosed());
      });
    });
  }
}

/** Some tens of lines a write. */
const BATCH_LENGTH = 16 * 1024;

function renderOptions(stream: TextStream): RenderOptions {
  return { colors: stream.colors, width: stream.columns() };
}
