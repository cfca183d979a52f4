/** What is remembered of records that are being written, so that a save seals what is new. Those used longest ago are forgotten. */

/** Runs and conversations that one process writes at a time, with room. Whoever is forgotten has some parts sealed once more. */
const MAX_SAVED = 1_000;
/** Most of what is loaded is looked at and not saved; what is saved is so soon after. */
const MAX_LOADED = 50;

export class KnownRecords<Known> {
  readonly #saved = new Map<string, Known>();
  readonly #loaded = new Map<string, Known>();

  get(id: string): Known | undefined {
    return this.#saved.get(id) ?? this.#loaded.get(id);
  }

  saved(id: string, known: Known): void {
    this.forget(id);
    keepNewest(this.#saved, id, known, MAX_SAVED);
  }

  /** What is stored now: another process may have written it. */
  loaded(id: string, known: Known): void {
    this.forget(id);
    keepNewest(this.#loaded, id, known, MAX_LOADED);
  }

  forget(id: string): void {
    this.#saved.delete(id);
    this.#loaded.delete(id);
  }
}

function keepNewest<Known>(records: Map<string, Known>, id: string, known: Known, max: number): void {
  records.set(id, known);
  const [oldest] = records.keys();
  if (records.size > max && oldest !== undefined) records.delete(oldest);
}
