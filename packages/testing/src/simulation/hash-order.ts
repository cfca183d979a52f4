/**
 * Hashes are the only work of the engine that the platform does in its own time. During a simulation they are given out when everything else
 * has got as far as it can, in the order in which they were asked for: one seed, one story.
 */

export interface HashOrder {
  /** Whether there was something to give out. */
  release(): Promise<boolean>;
  /** The platform's own hashes again. */
  end(): void;
}

interface Waiting {
  readonly hash: Promise<ArrayBuffer>;
  readonly resolve: (hash: Promise<ArrayBuffer>) => void;
}

/** Over all simulations: agents are recognised by the same few hashes again and again. */
const known = new Map<string, Promise<ArrayBuffer>>();

/** One at a time: it stands in for a function of the whole realm. */
export function orderHashes(): HashOrder {
  const { subtle } = globalThis.crypto;
  const digest = subtle.digest.bind(subtle);
  let waiting: Waiting[] = [];
  const ordered: typeof digest = (algorithm, data) => {
    const key = `${JSON.stringify(algorithm)} ${new TextDecoder('latin1').decode(data as Uint8Array)}`;
    let hash = known.get(key);
    if (hash === undefined) known.set(key, (hash = digest(algorithm, data)));
    const asked = hash;
    return new Promise((resolve) => waiting.push({ hash: asked, resolve }));
  };
  Object.defineProperty(subtle, 'digest', { value: ordered, configurable: true });
  return {
    async release() {
      const due = waiting;
      waiting = [];
      await Promise.all(due.map(({ hash }) => hash));
      for (const { hash, resolve } of due) resolve(hash);
      return due.length > 0;
    },
    end() {
      Reflect.deleteProperty(subtle, 'digest');
    },
  };
}
