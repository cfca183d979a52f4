/** What is remembered of records that are being written, so that a save seals what is new. The one used longest ago goes first. */

/** Runs and conversations that one process works on at a time, with room. Whoever is forgotten has some parts sealed once more. */
const MAX_RECORDS = 1_000;

export class KnownRecords<Known> {
  readonly #records = new Map<string, Known>();

  get(id: string): Known | undefined {
    return this.#records.get(id);
  }

  /** Keeps it as the one used last. */
  keep(id: string, known: Known): void {
    this.#records.delete(id);
    this.#records.set(id, known);
    if (this.#records.size <= MAX_RECORDS) return;
    const [oldest] = this.#records.keys();
    if (oldest !== undefined) this.#records.delete(oldest);
  }

  forget(id: string): void {
    this.#records.delete(id);
  }
}
