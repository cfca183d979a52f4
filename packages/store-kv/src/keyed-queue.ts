/** One thing after the other for each key, and all keys side by side. */
export class KeyedQueue {
  readonly #lasts = new Map<string, Promise<unknown>>();

  /** Runs the task when every task before it with this key has its outcome. */
  run<Value>(key: string, task: () => Promise<Value>): Promise<Value> {
    const before = this.#lasts.get(key);
    const outcome = before === undefined ? task() : before.then(task);
    const last = outcome.then(ignore, ignore);
    this.#lasts.set(key, last);
    void last.then(() => {
      if (this.#lasts.get(key) === last) this.#lasts.delete(key);
    });
    return outcome;
  }
}

function ignore(): void {
  return undefined;
}
