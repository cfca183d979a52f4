/** What runs in a child process: it opens the store and does what it is told over IPC. Plain JavaScript, so that no loader is needed. */
import type { JsonValue } from '@lousho/contract';

/** One call of the store, or the start of a loop of saves. */
export type Order =
  | {
      readonly kind: 'call';
      readonly number: number;
      readonly part: string;
      readonly method: string;
      readonly args: readonly unknown[];
    }
  | { readonly kind: 'save-on'; readonly number: number; readonly loop: SaveLoop };

/** Saves on and on, one at a time; save n stores `states[n % states.length]` with the `traceparent` `<mark><n>`. */
export interface SaveLoop {
  readonly id: string;
  readonly states: readonly unknown[];
  readonly firstNumber: number;
  readonly mark: string;
  /** Between two saves. Without it the process is inside of a save nearly all the time. */
  readonly pauseMs?: number;
  /** Under this lease, until some saves were refused in a row. */
  readonly lease?: { readonly owner: string; readonly fence: number | undefined };
}

export type Report =
  | { readonly kind: 'opened'; readonly methods: { readonly [part: string]: readonly string[] } }
  | {
      readonly kind: 'answer';
      readonly number: number;
      readonly value?: unknown;
      readonly error?: ReportedError;
    }
  /** Save n of the loop has resolved, with `false` when it was refused. */
  | { readonly kind: 'acknowledged'; readonly save: number; readonly saved: boolean };

export interface ReportedError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly details?: unknown;
}

/** The program for `node --input-type=module --eval`. */
export function childProgram(moduleUrl: string, options: JsonValue): string {
  // `serve` is written so that its text is the whole program: it uses nothing of this module.
  return [
    `import { setTimeout as pause } from 'node:timers/promises';`,
    `import open from ${JSON.stringify(moduleUrl)};`,
    `(${serve.toString()})(await open(${JSON.stringify(options)}), pause);`,
  ].join('\n');
}

function serve(
  store: Record<string, Record<string, unknown> | undefined>,
  pause: (ms: number) => Promise<void>,
): void {
  const REFUSALS_THAT_END_A_LOOP = 5;
  const parts: Record<string, Record<string, unknown> | undefined> = {
    store,
    checkpoints: store.checkpoints,
    approvals: store.approvals,
    sessions: store.sessions,
  };

  // Resolves when the message is in the channel: then it arrives, also when this process is killed right behind it.
  function send(report: Report): Promise<void> {
    return new Promise((resolve) => {
      process.send?.(report, undefined, undefined, () => resolve());
    });
  }

  function methodsOf(part: Record<string, unknown> | undefined): string[] {
    const names = new Set<string>();
    for (
      let level: object | null = part ?? null;
      level !== null && level !== Object.prototype;
      level = Object.getPrototypeOf(level) as object | null
    )
      for (const name of Object.getOwnPropertyNames(level))
        if (typeof part?.[name] === 'function') names.add(name);
    names.delete('constructor');
    return [...names];
  }

  async function call(part: string, method: string, args: readonly unknown[]): Promise<unknown> {
    const target = parts[part];
    return (target?.[method] as (...values: readonly unknown[]) => unknown).apply(target, [...args]);
  }

  async function saveOn({ id, states, firstNumber, mark, pauseMs = 0, lease }: SaveLoop): Promise<void> {
    for (let save = firstNumber, refusals = 0; refusals < REFUSALS_THAT_END_A_LOOP; save += 1) {
      const state = { ...(states[save % states.length] as object), traceparent: `${mark}${save}` };
      const saved =
        lease === undefined
          ? (await call('checkpoints', 'save', [id, state])) !== false
          : (await call('checkpoints', 'saveIfLeased', [id, state, lease.owner, lease.fence])) === true;
      refusals = saved ? 0 : refusals + 1;
      await send({ kind: 'acknowledged', save, saved });
      if (pauseMs > 0) await pause(pauseMs);
    }
  }

  async function obey(order: Order): Promise<void> {
    const { number } = order;
    try {
      const value =
        order.kind === 'call' ? await call(order.part, order.method, order.args) : await saveOn(order.loop);
      await send({ kind: 'answer', number, value });
    } catch (thrown) {
      const { name, message, code, details } = thrown as ReportedError;
      await send({
        kind: 'answer',
        number,
        error: { name, message, ...(code !== undefined && { code, details }) },
      });
    }
  }

  process.on('message', (order: Order) => void obey(order));
  // Whoever gave the orders is gone.
  process.on('disconnect', () => process.exit(0));
  void send({
    kind: 'opened',
    methods: Object.fromEntries(Object.keys(parts).map((part) => [part, methodsOf(parts[part])])),
  });
}
