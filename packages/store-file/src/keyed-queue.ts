/** One thing after the other for each key, and all keys side by side. */
export class KeyedQueue {
  readonly #lasts = new Map<string, Promise<unknown>>();

  /** Runs the task when every task before it with this key has its outcome. */
  run<Value>(key: string, task: () => Promise<Value>): Promise<Value> {
    const before = this.#lasts.get(key);
    const outcome = before === undefined ? task() : before.then(task);
    const forget = (): void => {
      if (this.#lasts.get(key) === last) this.#lasts.delete(key);
    };
    const last = outcome.then(forget, forget);
    this.#lasts.set(key, last);
    return outcome;
  }
}
