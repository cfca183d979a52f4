/** Sealing waits, and saves of one record must not overtake each other meanwhile: the store gets them in the order of the calls. */

export class InOrder {
  readonly #ends = new Map<string, Promise<void>>();

  /** `start` is called behind that of every earlier call with the key; nobody waits for what it gives. */
  async run<Prepared, Result>(
    key: string,
    prepare: () => Promise<Prepared>,
    start: (prepared: Prepared) => Promise<Result>,
  ): Promise<Result> {
    const before = this.#ends.get(key) ?? Promise.resolve();
    // In an object: a promise by itself would be waited for.
    const turn = before.then(async () => ({ result: start(await prepare()) }));
    const settle = (): void => {
      if (this.#ends.get(key) === end) this.#ends.delete(key);
    };
    const end: Promise<void> = turn.then(settle, settle);
    this.#ends.set(key, end);
    return (await turn).result;
  }

  /** Everything that was asked for so far has been started. */
  async started(): Promise<void> {
    await Promise.all(this.#ends.values());
  }
}
