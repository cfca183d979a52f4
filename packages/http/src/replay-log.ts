/** What is said while a run executes: from the beginning on, to everybody who asks, however late. */

export class ReplayLog<Value> {
  readonly #values: Value[] = [];
  #wake: (() => void)[] = [];
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }

  get length(): number {
    return this.#values.length;
  }

  add(...values: readonly Value[]): void {
    this.#values.push(...values);
    this.#wakeReaders();
  }

  end(): void {
    this.#isOver = true;
    this.#wakeReaders();
  }

  /** Until it is over. Readers come and go; the run goes on without them as well. */
  async *read(from = 0): AsyncGenerator<Value, void, undefined> {
    for (let next = from; ;) {
      const value = this.#values[next];
      if (value !== undefined) {
        next += 1;
        yield value;
      } else if (this.#isOver) {
        return;
      } else {
        await new Promise<void>((resolve) => this.#wake.push(resolve));
      }
    }
  }

  #wakeReaders(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
