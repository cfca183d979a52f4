/** Server-sent events, as they are read: whoever goes away stops nothing but his own reading. */
import { platformClock, type Clock } from '@lousho/contract';

const encoder = new TextEncoder();

/** Proxies end a connection on which nothing comes, many of them after 60 seconds: a tool may take longer than that. */
const SIGN_OF_LIFE_MS = 15_000;

export interface EventStreamOptions<Value> {
  /** The lines of one event, without the empty one behind it. */
  readonly encode: (value: Value) => string;
  readonly headers?: { readonly [name: string]: string };
  /** Behind the last one. */
  readonly end?: string;
  /** Of the signs of life, which readers pass over. Default: the platform's. */
  readonly clock?: Clock;
}

export function eventStream<Value>(
  values: AsyncIterable<Value>,
  { encode, headers = {}, end, clock = platformClock }: EventStreamOptions<Value>,
): Response {
  const source = values[Symbol.asyncIterator]();
  let coming: Promise<IteratorResult<Value>> | undefined;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      coming ??= source.next();
      const next = await withinTime(coming, clock);
      if (next === undefined) return controller.enqueue(encoder.encode(':\n\n'));
      coming = undefined;
      if (next.done !== true) return controller.enqueue(encoder.encode(`${encode(next.value)}\n\n`));
      if (end !== undefined) controller.enqueue(encoder.encode(`${end}\n\n`));
      controller.close();
    },
    cancel() {
      // Not waited for: it may be waiting for a value that is long in coming.
      void source.return?.();
    },
  });
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      ...headers,
    },
  });
}

/** `undefined` when it is long in coming. */
async function withinTime<Result>(coming: Promise<Result>, clock: Clock): Promise<Result | undefined> {
  let cancelTimer = (): void => undefined;
  const waited = new Promise<undefined>((resolve) => {
    cancelTimer = clock.setTimer(() => resolve(undefined), SIGN_OF_LIFE_MS, { keepAlive: false });
  });
  return Promise.race([coming, waited]).finally(() => cancelTimer());
}
