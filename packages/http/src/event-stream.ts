/** Server-sent events, as they are read: whoever goes away stops nothing but his own reading. */

const encoder = new TextEncoder();

export interface EventStreamOptions<Value> {
  /** The lines of one event, without the empty one behind it. */
  readonly encode: (value: Value) => string;
  readonly headers?: { readonly [name: string]: string };
  /** Behind the last one. */
  readonly end?: string;
}

export function eventStream<Value>(
  values: AsyncIterable<Value>,
  { encode, headers = {}, end }: EventStreamOptions<Value>,
): Response {
  const source = values[Symbol.asyncIterator]();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await source.next();
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
