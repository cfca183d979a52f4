/** `@lousho/http/node`: a fetch handler as a listener of `node:http`. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import type { Handler } from './routing.ts';

/** `createServer(nodeListener(handler))`. A client that goes away ends the reading of the response, and nothing else. */
export function nodeListener(handler: Handler): (request: IncomingMessage, response: ServerResponse) => void {
  return (incoming, outgoing) => {
    respond(handler, incoming, outgoing).catch(() => outgoing.destroy());
  };
}

async function respond(handler: Handler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const response = await handler(requestOf(incoming));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) {
    outgoing.end();
    return;
  }
  // The client sees that it was heard before the first word comes.
  outgoing.flushHeaders();
  await pipeline(Readable.fromWeb(response.body as NodeReadableStream<Uint8Array>), outgoing);
}

function requestOf(incoming: IncomingMessage): Request {
  const { method = 'GET', url = '/', headers } = incoming;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const given = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value ?? '']).map((one): [string, string] => [name, one]),
  );
  return new Request(new URL(url, `http://${headers.host ?? 'localhost'}`), {
    method,
    headers: given,
    ...(hasBody ? { body: Readable.toWeb(incoming), duplex: 'half' } : undefined),
  });
}
